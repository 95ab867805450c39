// The words of `slipway templates`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const names = "template";

const versionVerbs = () => import("../client/templates/version-verbs.ts");

export const TEMPLATES = group({
  area: "templates",
  name: "templates",
  help: "List, make, change and delete templates and their versions.",
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
        "[FOLDER] [--name NAME] [--version NAME] [--message TEXT] [--variable NAME=VALUE]... [--provisioner-tag NAME=VALUE]... [--organization NAME] [--no-activate]",
      help: "A folder with a template.yaml or *.tf (default: the one you are in) becomes the active version of the template (default: the folder's name).",
      load: () => import("../client/templates/push.ts"),
    },
    {
      name: "init",
      usage: "[FOLDER] [--example NAME] [--list]",
      help: "Write the files of a starter template (default: local) into a folder, to begin one of your own. --list shows all starters.",
      load: () => import("../client/templates/init.ts"),
    },
    {
      name: "pull",
      names,
      usage: "TEMPLATE [FOLDER] [--version NAME]",
      help: "The files that its active version, or another one, was made of; into an empty folder (default: the template's name).",
      load: () => import("../client/templates/pull.ts"),
    },
    {
      name: "access",
      names,
      usage:
        "TEMPLATE [--user NAME[:admin]]... [--group NAME[:admin]]... [--remove-user NAME]... [--remove-group NAME]...",
      help: "Who may use it and who change it; the group Everyone is all members of its organization.",
      load: () => import("../client/templates/access.ts"),
    },
    {
      name: "versions",
      names,
      usage: "TEMPLATE [--archived]",
      help: "Its versions, newest first.",
      load: () => import("../client/templates/versions.ts"),
    },
    {
      name: "promote",
      names,
      usage: "TEMPLATE VERSION",
      help: "New workspaces are made of this version.",
      load: async () => ({ run: (await versionVerbs()).promote }),
    },
    {
      name: "archive",
      names,
      usage: "TEMPLATE VERSION",
      help: "This version is no longer offered.",
      load: async () => ({ run: (await versionVerbs()).archive }),
    },
    {
      name: "unarchive",
      names,
      usage: "TEMPLATE VERSION",
      help: "It is offered again.",
      load: async () => ({ run: (await versionVerbs()).unarchive }),
    },
    {
      name: "edit",
      names,
      usage:
        "TEMPLATE [--name NAME] [--display-name TEXT] [--description TEXT] [--icon URL] [--ttl DURATION] [--activity-bump DURATION] [--failure-ttl DURATION] [--dormant-after DURATION] [--delete-dormant-after DURATION] [--autostop-days DAYS] [--autostop-weeks N] [--autostart-days DAYS] [--people-autostart on|off] [--people-autostop on|off] [--people-cancel on|off] [--only-active on|off] [--port-sharing LEVEL] [--snapshots-on-stop N|off] [--trash-days N|off] [--deprecate TEXT] [--undeprecate]",
      help: "How it is called and shown, how long its workspaces run (off: without end), on which days they stop or may start (monday,friday or none), what their people may choose, to whom ports may be opened at most (owner, organization, authenticated, public), how many snapshots made on stop are kept, and why it shall not be used any more.",
      load: () => import("../client/templates/edit.ts"),
    },
    {
      name: "delete",
      names,
      usage: "TEMPLATE [--yes]",
      help: "Deletes a template that has no workspaces, once you have said so again.",
      load: () => import("../client/templates/delete.ts"),
    },
  ],
});
