// The words of `slipway offline`: accounts by whoever is at the machine, while no server runs.
import { group } from "../group.ts";

export const PASSWORDS =
  "A password is made up and printed, or read with --password-file FILE (/dev/stdin for a pipe).";

export const OFFLINE = group({
  area: "server",
  name: "offline",
  help: "Make and rescue accounts at the data directory, while no server runs.",
  details: () =>
    [
      PASSWORDS,
      "Works on the data directory, or on the PostgreSQL of database_url, so no server may run on it. Takes the settings of `serve`.",
      "With a running server, `slipway users` and `slipway tokens` do this.",
    ].join("\n"),
  words: [
    {
      name: "setup",
      usage: "NAME --email EMAIL [--password-file FILE]",
      help: "Make the data directory and its first owner, before the first start.",
      load: () => import("../offline/setup.ts"),
    },
    {
      name: "users",
      usage:
        "list|create|suspend|activate|reset-password|reset-factors [NAME] [--email EMAIL] [--roles ROLE,...] [--password-file FILE]",
      help: "List, create and suspend users, or reset their passwords and second factors.",
      load: () => import("../offline/users.ts"),
    },
    {
      name: "tokens",
      usage: "list|create|revoke [TOKEN] [--user NAME] [--name TEXT] [--lifetime 168h]",
      help: "List, create and revoke tokens.",
      load: () => import("../offline/tokens.ts"),
    },
  ],
});
