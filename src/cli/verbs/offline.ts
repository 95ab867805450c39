// The subcommands of `slipway offline`: account management on the machine while no server runs.
import { group } from "../group.ts";

export const PASSWORDS =
  "A password is generated and printed, or read with --password-file FILE (/dev/stdin for a pipe).";

export const OFFLINE = group({
  area: "server",
  name: "offline",
  help: "Create and recover accounts in the data directory while no server is running.",
  details: () =>
    [
      PASSWORDS,
      "Works on the data directory or on database_url directly. Stop the server first. Takes the settings of `serve`.",
      "With a running server, use `slipway users` and `slipway tokens`.",
    ].join("\n"),
  subcommands: [
    {
      name: "setup",
      usage: "NAME --email EMAIL [--password-file FILE]",
      help: "Create the data directory and the first owner before the first start.",
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
