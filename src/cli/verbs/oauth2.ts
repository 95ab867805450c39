// The words of `slipway oauth2`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const names = "application";
const OPTIONS = "[--redirect-uri URL]... [--icon URL] [--scope SCOPE]...";

export const OAUTH2 = group({
  area: "people",
  name: "oauth2",
  help: "Look after the applications that may ask people for access (setting oauth2_provider).",
  details: () =>
    [
      "APP is a name or a client id. URL is https, http on a loopback address, or of a scheme of a program's own.",
      "--redirect-uri  one more address that people may be sent back to",
      "--icon          the address of a picture, or none",
      "--scope         the most that it may ask for; all: anything",
      CONNECTION(),
    ].join("\n"),
  words: [
    {
      name: "apps list",
      usage: "",
      help: "Those that owners have made, then those that registered themselves.",
      load: () => import("../client/oauth2/list.ts"),
    },
    {
      name: "apps create",
      usage: `NAME --callback-url URL ${OPTIONS} [--auth-method client_secret_basic|client_secret_post|none]`,
      help: "An application without a secret; `apps secrets` makes one.",
      load: () => import("../client/oauth2/create.ts"),
    },
    {
      name: "apps edit",
      names,
      usage: `APP [--name NAME] [--callback-url URL] ${OPTIONS}`,
      help: "What is left out stays, and so does what people have granted.",
      load: () => import("../client/oauth2/edit.ts"),
    },
    {
      name: "apps secrets",
      names,
      usage: "APP [--create] [--delete SECRET]...",
      help: "Its secrets by id and last characters, either of which is SECRET; a new one is printed once.",
      load: () => import("../client/oauth2/secrets.ts"),
    },
    {
      name: "apps delete",
      names,
      usage: "APP [--yes]",
      help: "Deletes it with all that people have granted it, once you have said so again.",
      load: () => import("../client/oauth2/delete.ts"),
    },
  ],
});
