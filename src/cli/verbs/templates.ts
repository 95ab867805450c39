// The subcommands of `slipway templates`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const completes = "template";

const versionVerbs = () => import("../client/templates/version-verbs.ts");

export const TEMPLATES = group({
  area: "templates",
  name: "templates",
  help: "Manage templates and their versions.",
  details: CONNECTION,
  subcommands: [
    {
      name: "list",
      usage: "",
      help: "Lists templates.",
      load: () => import("../client/templates/list.ts"),
    },
    {
      name: "push",
      usage:
        "[FOLDER] [--name NAME] [--version NAME] [--message TEXT] [--variable NAME=VALUE]... [--provisioner-tag NAME=VALUE]... [--organization NAME] [--no-activate]",
      help: "Uploads a folder with a template.yaml or *.tf (default: the current one) as the active version of a template (default: the folder's name).",
      load: () => import("../client/templates/push.ts"),
    },
    {
      name: "init",
      usage: "[FOLDER] [--example NAME] [--list]",
      help: "Writes a starter template (default: local) to a folder as a starting point. --list shows all starters.",
      load: () => import("../client/templates/init.ts"),
    },
    {
      name: "pull",
      completes,
      usage: "TEMPLATE [FOLDER] [--version NAME]",
      help: "Downloads the files of the active or another version into an empty folder (default: the template's name).",
      load: () => import("../client/templates/pull.ts"),
    },
    {
      name: "access",
      completes,
      usage:
        "TEMPLATE [--user NAME[:admin]]... [--group NAME[:admin]]... [--remove-user NAME]... [--remove-group NAME]...",
      help: "Shows or changes who can use and manage a template; the group Everyone contains all members of its organization.",
      load: () => import("../client/templates/access.ts"),
    },
    {
      name: "versions",
      completes,
      usage: "TEMPLATE [--archived]",
      help: "Lists versions, newest first.",
      load: () => import("../client/templates/versions.ts"),
    },
    {
      name: "promote",
      completes,
      usage: "TEMPLATE VERSION",
      help: "Makes this the active version, used for new workspaces.",
      load: async () => ({ run: (await versionVerbs()).promote }),
    },
    {
      name: "archive",
      completes,
      usage: "TEMPLATE VERSION",
      help: "Archives a version.",
      load: async () => ({ run: (await versionVerbs()).archive }),
    },
    {
      name: "unarchive",
      completes,
      usage: "TEMPLATE VERSION",
      help: "Unarchives a version.",
      load: async () => ({ run: (await versionVerbs()).unarchive }),
    },
    {
      name: "edit",
      completes,
      usage:
        "TEMPLATE [--name NAME] [--display-name TEXT] [--description TEXT] [--icon URL] [--ttl DURATION] [--activity-bump DURATION] [--failure-ttl DURATION] [--dormant-after DURATION] [--delete-dormant-after DURATION] [--autostop-days DAYS] [--autostop-weeks N] [--autostart-days DAYS] [--people-autostart on|off] [--people-autostop on|off] [--people-cancel on|off] [--only-active on|off] [--dotfiles on|off] [--port-sharing LEVEL] [--snapshots-on-stop N|off] [--home-backups on|off] [--trash-days N|off] [--wake-on-connect WHO] [--default-agent NAME|none] [--deprecate TEXT] [--undeprecate]",
      help: "Changes a template's name and description, autostop (a duration or off), required stop and autostart days (monday,friday or none), what users may change, the maximum port sharing level (owner, organization, authenticated, public), how many snapshots on stop are kept, whether workspace files are backed up on a schedule, who can start a stopped workspace by connecting to it (off, people, public), whether workspaces install their owner's dotfiles, the coding agent that chats and tasks start with, and its deprecation message.",
      load: () => import("../client/templates/edit.ts"),
    },
    {
      name: "delete",
      completes,
      usage: "TEMPLATE [--yes]",
      help: "Deletes a template without workspaces after confirmation.",
      load: () => import("../client/templates/delete.ts"),
    },
  ],
});
