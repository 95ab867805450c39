// The subcommands of `slipway workspaces`.
import type { EDITORS } from "#base/links/editor-links.ts";
import { group } from "../group.ts";
import type { SubVerb } from "../verb.ts";
import { CONNECTION } from "./client.ts";

const completes = "workspace";

export const WORKSPACES = group({
  area: "workspaces",
  name: "workspaces",
  help: "Manage workspaces, read their logs, open a terminal.",
  details: CONNECTION,
  subcommands: [
    {
      name: "list",
      usage: "[FILTER] [--all]",
      help: "Lists your workspaces, or all that you can see. Filter with terms such as status:running.",
      load: () => import("../client/workspaces/list.ts"),
    },
    {
      name: "show",
      completes,
      usage: "WORKSPACE",
      help: "Shows a workspace with its agents and apps; use OWNER/NAME for another user's.",
      load: () => import("../client/workspaces/show.ts"),
    },
    {
      name: "create",
      usage:
        "[NAME] [--repo URL [--branch NAME | --commit ID | --pull-request N] [--path FOLDER] [--configuration FILE] [--full-history]] [--template NAME] [--parameter NAME=VALUE]... [--preset NAME] [--ttl 8h] [--schedule 'CRON_TZ=Europe/Berlin 0 9 * * 1-5'] [--no-wait]",
      help: "Creates a workspace and waits until its agent is ready; --repo opens a Git repository in it.",
      load: () => import("../client/workspaces/create.ts"),
    },
    {
      name: "start",
      completes,
      usage: "WORKSPACE [--update] [--parameter NAME=VALUE]... [--no-wait]",
      help: "Starts a workspace and waits until its agent is ready; --update takes the template's active version.",
      load: () => import("../client/workspaces/start.ts"),
    },
    {
      name: "update",
      completes,
      usage: "WORKSPACE [--parameter NAME=VALUE]... [--no-wait]",
      help: "Updates a workspace to its template's active version, and restarts it if it is running.",
      load: () => import("../client/workspaces/update.ts"),
    },
    {
      name: "stop",
      completes,
      usage: "WORKSPACE [--no-wait]",
      help: "Stops a workspace.",
      load: () => import("../client/workspaces/stop.ts"),
    },
    {
      name: "restart",
      completes,
      usage: "WORKSPACE [--update] [--parameter NAME=VALUE]... [--no-wait]",
      help: "Stops a workspace and starts it again.",
      load: () => import("../client/workspaces/restart.ts"),
    },
    {
      name: "cancel",
      completes,
      usage: "WORKSPACE [--no-wait]",
      help: "Cancels the current build. Resources that it created stay in the workspace's state.",
      load: () => import("../client/workspaces/cancel.ts"),
    },
    {
      name: "rename",
      completes,
      usage: "WORKSPACE NAME",
      help: "Renames a workspace, if the server allows it (allow_workspace_renames).",
      load: () => import("../client/workspaces/rename.ts"),
    },
    {
      name: "favorite",
      completes,
      usage: "WORKSPACE",
      help: "Adds a workspace to your favorites, which are listed first.",
      load: async () => ({ run: (await import("../client/workspaces/favorite.ts")).favorite }),
    },
    {
      name: "unfavorite",
      completes,
      usage: "WORKSPACE",
      help: "Removes a workspace from your favorites.",
      load: async () => ({ run: (await import("../client/workspaces/favorite.ts")).unfavorite }),
    },
    {
      name: "delete",
      completes,
      usage: "WORKSPACE [--yes] [--permanent] [--orphan] [--no-wait]",
      help: "Deletes a workspace after confirmation; --permanent skips the trash, --orphan leaves resources behind that cannot be removed.",
      load: () => import("../client/workspaces/delete.ts"),
    },
    {
      name: "fork",
      completes,
      usage: "WORKSPACE [--count N] [--name NAME]... [--start] [--no-chats] [--no-wait]",
      help: "Creates workspaces with copies of this one's files and of your chats in it; --start starts them.",
      load: () => import("../client/workspaces/fork.ts"),
    },
    {
      name: "restore",
      usage: "WORKSPACE [--as NAME] [--no-wait]",
      help: "Restores a deleted workspace from the trash, stopped and with its files.",
      load: () => import("../client/workspaces/restore.ts"),
    },
    {
      name: "logs",
      completes,
      usage: "WORKSPACE [--follow]",
      help: "Prints the logs of the latest build and the agents; --follow keeps printing.",
      load: () => import("../client/logs.ts"),
    },
    {
      name: "shell",
      completes,
      usage: "WORKSPACE[.AGENT] [--container NAME] [--container-user NAME] [--reconnect ID] [-- COMMAND]",
      help: "Opens a terminal, or runs a command and exits with its exit code; `~.` detaches, --reconnect reattaches.",
      load: () => import("../client/workspaces/shell.ts"),
    },
  ],
});

const changeSchedule = () => import("../client/schedule/change.ts");

export const SCHEDULE = group({
  area: "workspaces",
  name: "schedule",
  help: "Show or change when a workspace starts and stops automatically.",
  details: CONNECTION,
  subcommands: [
    {
      name: "show",
      completes,
      usage: "WORKSPACE",
      help: "Shows a workspace's schedule.",
      load: () => import("../client/schedule/show.ts"),
    },
    {
      name: "start",
      completes,
      usage: "WORKSPACE TIME|off [DAYS] [ZONE]",
      help: "Sets autostart: a time such as 9:30, days such as Mon-Fri, a time zone such as Europe/Berlin (default: every day, this machine's time zone).",
      load: async () => ({ run: (await changeSchedule()).start }),
    },
    {
      name: "stop",
      completes,
      usage: "WORKSPACE DURATION|off",
      help: "Sets autostop: a duration after each start, such as 8h.",
      load: async () => ({ run: (await changeSchedule()).stop }),
    },
    {
      name: "extend",
      completes,
      usage: "WORKSPACE DURATION",
      help: "Changes the current deadline to this long from now.",
      load: async () => ({ run: (await changeSchedule()).extend }),
    },
    {
      name: "quiet",
      usage: "[TIME|off] [ZONE]",
      help: "Shows or sets your quiet hours: the time of day, such as 22:00, when templates that require a stop stop your workspaces.",
      load: () => import("../client/schedule/quiet.ts"),
    },
  ],
});

const changeShare = () => import("../client/share/change.ts");
const sharePorts = () => import("../client/share/ports.ts");

export const SHARE = group({
  area: "workspaces",
  name: "share",
  help: "Share a workspace, or one of its ports, with others.",
  details: () => `USER is a username, an email address or an ID.\n${CONNECTION()}`,
  subcommands: [
    {
      name: "status",
      completes,
      usage: "WORKSPACE",
      help: "Shows who a workspace is shared with.",
      load: () => import("../client/share/status.ts"),
    },
    {
      name: "add",
      completes,
      usage: "WORKSPACE [--user USER]... [--group GROUP]... [--everyone] [--role use|admin]",
      help: "Shares a workspace with users, groups or everyone in its organization; with the role admin they can also start, stop and change it. Users get a notification, members of a group do not.",
      load: async () => ({ run: (await changeShare()).add }),
    },
    {
      name: "remove",
      completes,
      usage: "WORKSPACE [--user USER]... [--group GROUP]... [--everyone]",
      help: "Stops sharing a workspace.",
      load: async () => ({ run: (await changeShare()).remove }),
    },
    {
      name: "ports",
      completes,
      usage: "WORKSPACE",
      help: "Lists shared ports.",
      load: async () => ({ run: (await sharePorts()).list }),
    },
    {
      name: "port",
      completes,
      usage: "WORKSPACE[.AGENT] PORT --to owner|organization|authenticated|public [--https]",
      help: "Sets who can open a port: only you (owner), the organization, signed-in users, or everyone (public); --https if the port serves HTTPS.",
      load: async () => ({ run: (await sharePorts()).change }),
    },
  ],
});

export const TRASH = group({
  area: "workspaces",
  name: "trash",
  help: "List deleted workspaces that can be restored.",
  details: CONNECTION,
  subcommands: [
    {
      name: "list",
      usage: "",
      help: "Lists deleted workspaces, newest first. `slipway workspaces restore` restores one.",
      load: () => import("../client/workspaces/trash.ts"),
    },
  ],
});

export const SNAPSHOTS = group({
  area: "workspaces",
  name: "snapshots",
  help: "Create and restore snapshots of a workspace's files.",
  details: () => `SNAPSHOT is a name, an ID, or a unique prefix of an ID.\n${CONNECTION()}`,
  subcommands: [
    {
      name: "create",
      completes,
      usage: "WORKSPACE [--name TEXT] [--no-wait]",
      help: "Creates a snapshot. Running programs are paused while files are copied.",
      load: () => import("../client/snapshots/create.ts"),
    },
    {
      name: "list",
      completes,
      usage: "WORKSPACE",
      help: "Lists a workspace's snapshots, newest first.",
      load: () => import("../client/snapshots/list.ts"),
    },
    {
      name: "restore",
      completes,
      usage: "WORKSPACE SNAPSHOT [--yes] [--no-wait]",
      help: "Replaces the workspace's files with the snapshot's. A running workspace is restarted.",
      load: () => import("../client/snapshots/restore.ts"),
    },
    {
      name: "delete",
      completes,
      usage: "WORKSPACE SNAPSHOT [--yes]",
      help: "Deletes a snapshot.",
      load: () => import("../client/snapshots/delete.ts"),
    },
  ],
});

const openEditors = () => import("../client/open/editor.ts");
const editor = (name: (typeof EDITORS)[number], title: string): SubVerb => ({
  name,
  completes,
  usage: "WORKSPACE[.AGENT] [FOLDER] [--print] [--with-token]",
  help: `Opens a workspace in ${title}, using its Coder extension.`,
  load: async () => ({ run: (await openEditors()).editors[name] }),
});

export const OPEN = group({
  area: "workspaces",
  name: "open",
  help: "Open a workspace in the browser or an editor, or open one of its apps.",
  details: () =>
    [
      "--print       prints the link instead of opening it",
      "--with-token  creates a session key for the extension and puts it in the link, where other users of this machine may see it;",
      "              without it, the extension prompts",
      CONNECTION(),
    ].join("\n"),
  otherwise: { usage: "WORKSPACE [--print]", load: () => import("../client/open/page.ts") },
  subcommands: [
    editor("vscode", "VS Code"),
    editor("vscode-insiders", "VS Code Insiders"),
    editor("vscodium", "VSCodium"),
    editor("cursor", "Cursor"),
    editor("windsurf", "Windsurf"),
    {
      name: "jetbrains",
      completes,
      usage: "WORKSPACE[.AGENT] [FOLDER] [--print] [--with-token]",
      help: "Opens a workspace in JetBrains Gateway, which asks for the editor.",
      load: async () => ({ run: (await openEditors()).jetbrains }),
    },
    {
      name: "app",
      completes,
      usage: "WORKSPACE[.AGENT] APP [--print] [--yes]",
      help: "Opens a workspace app in the browser. Asks before it starts another program, except for editors whose scheme is in external_app_schemes.",
      load: () => import("../client/open/app.ts"),
    },
  ],
});
