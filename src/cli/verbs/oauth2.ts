// The subcommands of `slipway oauth2`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const completes = "application";
const OPTIONS = "[--redirect-uri URL]... [--icon URL] [--scope SCOPE]...";

export const OAUTH2 = group({
  area: "people",
  name: "oauth2",
  help: "Manage OAuth applications (setting oauth2_provider).",
  details: () =>
    [
      "APP is a name or a client ID. URL is https, http on a loopback address, or a custom scheme.",
      "--redirect-uri  another URL that users may be sent back to",
      "--icon          image URL, or none",
      "--scope         maximum scopes it can request, or all",
      CONNECTION(),
    ].join("\n"),
  subcommands: [
    {
      name: "apps list",
      usage: "",
      help: "Lists applications created by owners, then self-registered ones.",
      load: () => import("../client/oauth2/list.ts"),
    },
    {
      name: "apps create",
      usage: `NAME --callback-url URL ${OPTIONS} [--auth-method client_secret_basic|client_secret_post|none]`,
      help: "Creates an application without a secret; `apps secrets` creates one.",
      load: () => import("../client/oauth2/create.ts"),
    },
    {
      name: "apps edit",
      completes,
      usage: `APP [--name NAME] [--callback-url URL] ${OPTIONS}`,
      help: "Changes an application. Omitted options and existing grants are unchanged.",
      load: () => import("../client/oauth2/edit.ts"),
    },
    {
      name: "apps secrets",
      completes,
      usage: "APP [--create] [--delete SECRET]...",
      help: "Lists secrets by ID and last characters, which both identify a SECRET. A new secret is printed once.",
      load: () => import("../client/oauth2/secrets.ts"),
    },
    {
      name: "apps delete",
      completes,
      usage: "APP [--yes]",
      help: "Deletes an application and its grants after confirmation.",
      load: () => import("../client/oauth2/delete.ts"),
    },
  ],
});
