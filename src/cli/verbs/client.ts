// The verbs that talk to a running server: signing in, and what is called by itself.
import { CLIENT_ENV_PREFIX, CLIENT_SETTINGS } from "#base/config/client-settings.ts";
import { settingsHelp } from "#base/config/describe.ts";
import type { Verb } from "../verb.ts";

/** What every verb says of the server that it talks to. */
export const CONNECTION = (): string =>
  `--output json|table  what is printed; --json is short for --output json\n\n${settingsHelp(CLIENT_SETTINGS, CLIENT_ENV_PREFIX)}`;

export const SIGNING_IN: readonly Verb[] = [
  {
    name: "login",
    help: "Sign in to a server and keep the session for the other verbs.",
    usage: "[URL] [--email EMAIL --password-stdin [--code CODE] | --token-stdin] [--json]",
    details: () =>
      [
        "Asks for e-mail and password, or for a token, which the page /cli-auth of the server shows.",
        "--password-stdin, --token-stdin  read the secret from a pipe instead",
        "--code CODE  of the second factor, where the account has one; otherwise it is asked for",
        "The session is kept in $XDG_CONFIG_HOME/slipway/session.json (~/.config without it), readable for you alone.",
      ].join("\n"),
    load: () => import("../client/login.ts"),
  },
  {
    name: "logout",
    help: "End the session that `login` has kept.",
    usage: "[--json]",
    load: () => import("../client/logout.ts"),
  },
  {
    name: "whoami",
    help: "Say who you are to the server.",
    usage: "[--json] [settings]",
    details: CONNECTION,
    load: () => import("../client/whoami.ts"),
  },
];

export const LOGS: Verb = {
  name: "logs",
  help: "Print what a workspace's newest build and its agents wrote.",
  usage: "WORKSPACE [--follow] [--json] [settings]",
  details: CONNECTION,
  names: "workspace",
  load: () => import("../client/logs.ts"),
};
