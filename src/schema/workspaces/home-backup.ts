// Wire shapes of home backups: copies of a workspace's files in a folder or bucket, away from the machine that stores them.
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";

const HOME_BACKUP_ENGINES = ["archive", "restic"] as const;
export type HomeBackupEngine = (typeof HOME_BACKUP_ENGINES)[number];

const HOME_BACKUP_STATUSES = ["creating", "ready", "failed", "deleting"] as const;
export type HomeBackupStatus = (typeof HOME_BACKUP_STATUSES)[number];

const engine = named(
  "HomeBackupEngine",
  oneOf(
    HOME_BACKUP_ENGINES,
    "What creates the backups. `archive`: Slipway itself, as encrypted archives. `restic`: the program restic.",
  ),
);

export const HomeBackup = namedObject("HomeBackup", {
  id: uuid(),
  workspace_id: uuid(),
  status: named(
    "HomeBackupStatus",
    oneOf(HOME_BACKUP_STATUSES, "The status of the backup. Only `ready` ones can be restored."),
  ),
  engine: t.Optional(engine),
  location: t.String({ description: "The folder or bucket that contains the backup." }),
  bytes: t.Integer({ minimum: 0, description: "The size of the files in bytes; 0 until the backup is ready." }),
  added_bytes: t.Integer({ minimum: 0, description: "The number of bytes stored in addition to earlier backups." }),
  error: t.String({ description: "Why the backup failed, or how the stored backup is damaged; empty otherwise." }),
  created_at: time(),
  verified_at: t.Optional(time("When the backup was last verified.")),
});
export type HomeBackup = Static<typeof HomeBackup>;

export const HomeBackups = namedObject("HomeBackups", {
  backups: t.Array(HomeBackup, { description: "The home backups, newest first." }),
  bytes: t.Integer({ minimum: 0, description: "The stored size of all backups in bytes." }),
  interval_ms: t.Optional(
    t.Integer({ description: "How often a backup is created, in milliseconds; absent if only on request." }),
  ),
  location: t.String({ description: "The folder or bucket that the next backup is stored in." }),
  unsupported: t.String({ description: "Why the workspace can't be backed up; empty if it can." }),
});
export type HomeBackups = Static<typeof HomeBackups>;

const HomeOfWorkspace = namedObject("HomeOfWorkspace", {
  workspace_id: uuid(),
  workspace_name: t.String(),
  owner_name: t.String({ description: "The username of the workspace's owner." }),
  backups: t.Integer({ description: "The number of backups." }),
  bytes: t.Integer({ description: "The stored size of all backups in bytes." }),
  last_at: t.Optional(time("When the newest backup was created.")),
  problem: t.String({
    description:
      "The problem: there is no backup yet, or it is too old, damaged or failed. Empty if there is no problem.",
  }),
});

export const HomeBackupReport = namedObject("HomeBackupReport", {
  location: t.String({
    description: "The folder or bucket that backups are stored in; empty if home backups are off.",
  }),
  interval_ms: t.Optional(
    t.Integer({ description: "How often each workspace is backed up, in milliseconds; absent if only on request." }),
  ),
  engine: t.Optional(engine),
  keep_daily: t.Integer({ description: "How many days one backup a day is kept." }),
  keep_weekly: t.Integer({ description: "How many weeks one backup a week is kept." }),
  problem: t.String({ description: "Why backups can't be created; empty if they can." }),
  bytes: t.Integer({ description: "The stored size of all backups in bytes." }),
  backups: t.Integer({ description: "The number of backups of all workspaces." }),
  workspaces: t.Array(HomeOfWorkspace, { description: "The workspaces, those with problems first; at most 200." }),
});
export type HomeBackupReport = Static<typeof HomeBackupReport>;
