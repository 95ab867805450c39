// The words of `slipway secrets`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const names = "secret";
const PLACES = "[--env VARIABLE] [--file PATH] [--description TEXT] [--value-file FILE]";

export const SECRETS = group({
  area: "workspaces",
  name: "secrets",
  help: "Keep secrets that your workspaces find in their environment or in files.",
  details: () =>
    [
      "The value comes from FILE (/dev/stdin for a pipe), from a pipe, or is asked for where nobody sees it.",
      "PATH is absolute or below ~/. Workspaces have what is kept when they start.",
      CONNECTION(),
    ].join("\n"),
  words: [
    { name: "list", usage: "", help: "Yours, without their values.", load: () => import("../client/secrets/list.ts") },
    {
      name: "create",
      usage: `NAME ${PLACES}`,
      help: "Keeps one, for a variable, a file or both.",
      load: () => import("../client/secrets/create.ts"),
    },
    {
      name: "change",
      names,
      usage: `NAME ${PLACES}`,
      help: "Another value, or another place for it.",
      load: () => import("../client/secrets/change.ts"),
    },
    {
      name: "remove",
      names,
      usage: "NAME",
      help: "It is kept no longer.",
      load: () => import("../client/secrets/remove.ts"),
    },
  ],
});
