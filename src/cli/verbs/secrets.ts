// The subcommands of `slipway secrets`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const completes = "secret";
const OPTIONS = "[--env VARIABLE] [--file PATH] [--description TEXT] [--value-file FILE]";

export const SECRETS = group({
  area: "workspaces",
  name: "secrets",
  help: "Manage secrets that your workspaces get as environment variables or files.",
  details: () =>
    [
      "The value is read from FILE (/dev/stdin for a pipe), from standard input, or from a hidden prompt.",
      "PATH is absolute or starts with ~/. Workspaces get the secrets that exist when they start.",
      CONNECTION(),
    ].join("\n"),
  subcommands: [
    {
      name: "list",
      usage: "",
      help: "Lists your secrets, without values.",
      load: () => import("../client/secrets/list.ts"),
    },
    {
      name: "create",
      usage: `NAME ${OPTIONS}`,
      help: "Creates a secret for a variable, a file or both.",
      load: () => import("../client/secrets/create.ts"),
    },
    {
      name: "change",
      completes,
      usage: `NAME ${OPTIONS}`,
      help: "Changes a secret's value or target.",
      load: () => import("../client/secrets/change.ts"),
    },
    {
      name: "remove",
      completes,
      usage: "NAME",
      help: "Deletes a secret.",
      load: () => import("../client/secrets/remove.ts"),
    },
  ],
});
