// Wire shapes of home backups: copies of a workspace's files in a folder or a bucket, away from the machine that holds them.
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { named, namedObject } from "../named.ts";
import { oneOf } from "../one-of.ts";

const HOME_BACKUP_ENGINES = ["archive", "restic"] as const;
export type HomeBackupEngine = (typeof HOME_BACKUP_ENGINES)[number];

const HOME_BACKUP_STATUSES = ["creating", "ready", "failed", "deleting"] as const;
export type HomeBackupStatus = (typeof HOME_BACKUP_STATUSES)[number];

const engine = named("HomeBackupEngine", oneOf(HOME_BACKUP_ENGINES, "What made it."));

export const HomeBackup = namedObject("HomeBackup", {
  id: uuid(),
  workspace_id: uuid(),
  status: named("HomeBackupStatus", oneOf(HOME_BACKUP_STATUSES)),
  engine: t.Optional(engine),
  location: t.String({ description: "The folder or bucket it is in." }),
  bytes: t.Integer({ minimum: 0, description: "Size of the files; 0 until it is ready." }),
  added_bytes: t.Integer({ minimum: 0, description: "What had to be stored that the backup before does not have." }),
  error: t.String({ description: "Why it failed, or what is wrong with what is stored; empty otherwise." }),
  created_at: time(),
  verified_at: t.Optional(time("When it was last read back whole and found intact.")),
});
export type HomeBackup = Static<typeof HomeBackup>;

export const HomeBackups = namedObject("HomeBackups", {
  backups: t.Array(HomeBackup, { description: "The newest first." }),
  bytes: t.Integer({ minimum: 0, description: "What all of them had to store." }),
  interval_ms: t.Optional(t.Integer({ description: "How often one is made; absent: only on request." })),
  location: t.String({ description: "Where the next one goes." }),
  unsupported: t.String({ description: "Why the workspace can have none; empty when it can." }),
});
export type HomeBackups = Static<typeof HomeBackups>;

const HomeOfWorkspace = namedObject("HomeOfWorkspace", {
  workspace_id: uuid(),
  workspace_name: t.String(),
  owner_name: t.String(),
  backups: t.Integer({ description: "How many there are." }),
  bytes: t.Integer({ description: "What all of them had to store." }),
  last_at: t.Optional(time("When the newest was made.")),
  problem: t.String({ description: "What is wrong: none yet, too old, damaged or failed; empty when nothing is." }),
});

export const HomeBackupReport = namedObject("HomeBackupReport", {
  location: t.String({ description: "Where backups go; empty when nothing is set." }),
  interval_ms: t.Optional(
    t.Integer({ description: "How often each workspace is backed up; absent: only on request." }),
  ),
  engine: t.Optional(engine),
  keep_daily: t.Integer(),
  keep_weekly: t.Integer(),
  problem: t.String({ description: "Why no backups can be made; empty when they can." }),
  bytes: t.Integer({ description: "What all backups had to store." }),
  backups: t.Integer(),
  workspaces: t.Array(HomeOfWorkspace, { description: "Those with a problem first; at most 200." }),
});
export type HomeBackupReport = Static<typeof HomeBackupReport>;
