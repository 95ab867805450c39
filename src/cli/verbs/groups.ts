// The words of `slipway groups`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const names = "group";
const OPTIONS = "[--display-name TEXT] [--avatar-url URL] [--quota N] [--organization NAME]";

export const GROUPS = group({
  area: "people",
  name: "groups",
  help: "List, make, change and delete groups of an organization, and say who is in them.",
  details: () =>
    [
      "GROUP is a name or an id; without --organization those of the organization `default`.",
      "--quota  credits that each member may add to the daily cost of their workspaces",
      CONNECTION(),
    ].join("\n"),
  words: [
    {
      name: "list",
      usage: "[--organization NAME]",
      help: "All of them; Everyone is the group of all members.",
      load: () => import("../client/groups/list.ts"),
    },
    {
      name: "create",
      usage: `NAME ${OPTIONS}`,
      help: "A group with nobody in it.",
      load: () => import("../client/groups/create.ts"),
    },
    {
      name: "edit",
      names,
      usage: `GROUP [--name NAME] ${OPTIONS}`,
      help: "What is left out stays.",
      load: () => import("../client/groups/edit.ts"),
    },
    {
      name: "members",
      names,
      usage: "GROUP [--add USER]... [--remove USER]... [--organization NAME]",
      help: "Who is in it; who comes has what was shared with it at once.",
      load: () => import("../client/groups/members.ts"),
    },
    {
      name: "delete",
      names,
      usage: "GROUP [--yes] [--organization NAME]",
      help: "Deletes it once you have said so again; its members lose what was shared with it.",
      load: () => import("../client/groups/delete.ts"),
    },
  ],
});
