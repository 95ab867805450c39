// The subcommands of `slipway groups`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const completes = "group";
const OPTIONS = "[--display-name TEXT] [--avatar-url URL] [--quota N] [--organization NAME]";

export const GROUPS = group({
  area: "people",
  name: "groups",
  help: "Manage the groups of an organization and their members.",
  details: () =>
    [
      "GROUP is a name or an ID. The default organization is `default`.",
      "--quota  credits that each member may add to the daily cost of their workspaces",
      CONNECTION(),
    ].join("\n"),
  subcommands: [
    {
      name: "list",
      usage: "[--organization NAME]",
      help: "Lists groups. Everyone contains all members.",
      load: () => import("../client/groups/list.ts"),
    },
    {
      name: "create",
      usage: `NAME ${OPTIONS}`,
      help: "Creates an empty group.",
      load: () => import("../client/groups/create.ts"),
    },
    {
      name: "edit",
      completes,
      usage: `GROUP [--name NAME] ${OPTIONS}`,
      help: "Changes a group. Omitted options are unchanged.",
      load: () => import("../client/groups/edit.ts"),
    },
    {
      name: "members",
      completes,
      usage: "GROUP [--add USER]... [--remove USER]... [--organization NAME]",
      help: "Lists, adds or removes members. Added members immediately get access to what is shared with the group.",
      load: () => import("../client/groups/members.ts"),
    },
    {
      name: "delete",
      completes,
      usage: "GROUP [--yes] [--organization NAME]",
      help: "Deletes a group after confirmation. Its members lose access to what was shared with it.",
      load: () => import("../client/groups/delete.ts"),
    },
  ],
});
