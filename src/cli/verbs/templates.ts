// The words of `slipway templates`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

export const TEMPLATES = group({
  name: "templates",
  help: "List templates, or push a folder as a template's new version.",
  details: CONNECTION,
  words: [
    {
      name: "list",
      usage: "",
      help: "What workspaces can be made of.",
      load: () => import("../client/templates/list.ts"),
    },
    {
      name: "push",
      usage:
        "[FOLDER] [--name NAME] [--version NAME] [--message TEXT] [--variable NAME=VALUE]... [--organization NAME] [--no-activate]",
      help: "A folder with a template.yaml (default: the one you are in) becomes the active version of the template (default: the folder's name).",
      load: () => import("../client/templates/push.ts"),
    },
  ],
});
