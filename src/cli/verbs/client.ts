// The verbs that talk to a running server: signing in, and what is called by itself.
import { CLIENT_ENV_PREFIX, CLIENT_SETTINGS } from "#base/config/client-settings.ts";
import { settingsHelp } from "#base/config/describe.ts";
import { group } from "../group.ts";
import type { Verb } from "../verb.ts";

/** What every verb says of the server that it talks to. */
export const CONNECTION = (): string =>
  `--output json|table  what is printed; --json is short for --output json\n\n${settingsHelp(CLIENT_SETTINGS, CLIENT_ENV_PREFIX)}`;

export const SIGNING_IN: readonly Verb[] = [
  group({
    name: "login",
    area: "start",
    help: "Sign in to a server and keep the session for the other verbs.",
    otherwise: {
      usage: "[URL] [--email EMAIL --password-stdin [--code CODE] | --token-stdin | --use-token-as-session] [--json]",
      load: () => import("../client/login.ts"),
    },
    details: () =>
      [
        "Asks for e-mail and password, or for a token, which the page /cli-auth of the server shows.",
        "--password-stdin, --token-stdin  read the secret from a pipe instead",
        "--code CODE  of the second factor, where the account has one; otherwise it is asked for",
        "--use-token-as-session  keeps the token of SLIPWAY_TOKEN or CODER_SESSION_TOKEN",
        "The session is kept in $XDG_CONFIG_HOME/slipway/session.json (~/.config without it), readable for you alone, or in the",
        "files `url` and `session` of `slipway --global-config FOLDER login`.",
      ].join("\n"),
    words: [
      {
        name: "token",
        usage: "[--url URL] [--json]",
        help: "Prints the token of the session.",
        load: () => import("../client/login-token.ts"),
      },
    ],
  }),
  {
    name: "logout",
    area: "start",
    help: "End the session that `login` has kept.",
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
  help: "Print what a workspace's newest build and its agents wrote.",
  usage: "WORKSPACE [--follow] [--json] [settings]",
  details: CONNECTION,
  names: "workspace",
  load: () => import("../client/logs.ts"),
};
