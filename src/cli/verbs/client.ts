// The verbs that talk to a running server: signing in, and those without subcommands.
import { CLIENT_ENV_PREFIX, CLIENT_SETTINGS } from "#base/config/client-settings.ts";
import { formatSettingsHelp } from "#base/config/describe.ts";
import { group } from "../group.ts";
import type { Verb } from "../verb.ts";

/** The help text about the server connection, shared by these verbs. */
export const CONNECTION = (): string =>
  `--output json|table  output format; --json is short for --output json\n\n${formatSettingsHelp(CLIENT_SETTINGS, CLIENT_ENV_PREFIX)}`;

export const SIGNING_IN: readonly Verb[] = [
  group({
    name: "login",
    area: "start",
    help: "Sign in to a server and store the session.",
    otherwise: {
      usage: "[URL] [--email EMAIL --password-stdin [--code CODE] | --token-stdin | --use-token-as-session] [--json]",
      load: () => import("../client/login.ts"),
    },
    details: () =>
      [
        "Prompts for email and password, or for a token from the server's page /cli-auth.",
        "--password-stdin, --token-stdin  read the secret from standard input instead",
        "--code CODE  second-factor code, if the account has one; otherwise it is prompted for",
        "--use-token-as-session  store the token from SLIPWAY_TOKEN or CODER_SESSION_TOKEN",
        "The session is stored in $XDG_CONFIG_HOME/slipway/session.json (default ~/.config), readable only by you, or in the",
        "files `url` and `session` in FOLDER with `slipway --global-config FOLDER login`.",
      ].join("\n"),
    subcommands: [
      {
        name: "token",
        usage: "[--url URL] [--json]",
        help: "Prints the session token.",
        load: () => import("../client/login-token.ts"),
      },
    ],
  }),
  {
    name: "logout",
    area: "start",
    help: "End the stored session.",
    usage: "[--yes] [--json]",
    load: () => import("../client/logout.ts"),
  },
  {
    name: "whoami",
    area: "start",
    help: "Show who you are signed in as.",
    usage: "[--json] [settings]",
    details: CONNECTION,
    load: () => import("../client/whoami.ts"),
  },
];

export const LOGS: Verb = {
  name: "logs",
  area: "workspaces",
  help: "Print the logs of a workspace's latest build and its agents.",
  usage: "WORKSPACE [--follow] [--json] [settings]",
  details: CONNECTION,
  completes: "workspace",
  load: () => import("../client/logs.ts"),
};
