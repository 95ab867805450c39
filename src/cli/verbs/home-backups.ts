// The subcommands of `slipway home-backups`: some call the server, others need only the folder or bucket.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const completes = "workspace";
const offline = () => import("../offline/home-backups.ts");

export const HOME_BACKUPS = group({
  area: "workspaces",
  name: "home-backups",
  help: "Back up the files of workspaces to a folder or S3, and restore them.",
  details: () =>
    [
      "BACKUP is an ID or a unique prefix of one; restore takes the newest by default.",
      "key, search and extract work without a server and take the settings of `serve`. On another machine, pass the location",
      "and set SLIPWAY_HOME_BACKUP_RECOVERY_KEY to the key that `slipway home-backups key` printed.",
      CONNECTION(),
    ].join("\n"),
  subcommands: [
    {
      name: "create",
      completes,
      usage: "WORKSPACE [--no-wait]",
      help: "Backs up a workspace's files now. Running programs are paused while a snapshot is created.",
      load: () => import("../client/home-backups/create.ts"),
    },
    {
      name: "list",
      completes,
      usage: "WORKSPACE",
      help: "Lists a workspace's backups, newest first.",
      load: () => import("../client/home-backups/list.ts"),
    },
    {
      name: "restore",
      completes,
      usage: "WORKSPACE [BACKUP] [--as NAME] [--no-snapshot] [--yes]",
      help: "Replaces the workspace's files with those of a backup, after creating a snapshot; --as creates a new workspace from the backup instead.",
      load: () => import("../client/home-backups/restore.ts"),
    },
    {
      name: "delete",
      completes,
      usage: "WORKSPACE BACKUP [--yes]",
      help: "Deletes a backup.",
      load: () => import("../client/home-backups/delete.ts"),
    },
    {
      name: "key",
      usage: "[--json] [settings]",
      help: "Prints the recovery key, which decrypts all backups on any machine. Keep it in a safe place.",
      load: async () => ({ run: (await offline()).key }),
    },
    {
      name: "search",
      usage: "[WORKSPACE] [--json] [settings]",
      help: "Lists the backups in the folder or bucket.",
      load: async () => ({ run: (await offline()).search }),
    },
    {
      name: "extract",
      usage: "BACKUP|WORKSPACE FOLDER [--json] [settings]",
      help: "Unpacks a backup, or the newest of a workspace, into an empty or missing folder.",
      load: async () => ({ run: (await offline()).extractOne }),
    },
  ],
});
