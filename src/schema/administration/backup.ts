// Wire shapes of backups of the server's data directory: existing ones, and the one being created or verified.
import { type Static, Type as t } from "@sinclair/typebox";
import { time } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

const orNull = <T extends ReturnType<typeof t.String> | ReturnType<typeof t.Integer>>(shape: T, description: string) =>
  t.Union([shape, t.Null()], { description });

export const Backup = namedObject("Backup", {
  name: t.String({ description: "The name of the backup's folder." }),
  created_at: time(),
  bytes: t.Integer({ description: "The size of the backup, in bytes." }),
  files: t.Integer({ description: "The number of files in the backup." }),
  version: t.String({
    description: "The version of the program that created it; empty if its manifest cannot be read.",
  }),
  problem: t.String({ description: "Why the backup can't be used; empty if there is no known reason." }),
  checked_at: orNull(
    time(),
    "When this process last verified the whole backup; null if it hasn't since the server started.",
  ),
});
export type Backup = Static<typeof Backup>;

export const BackupWork = namedObject("BackupWork", {
  kind: oneOf(["make", "check"], "What is being done. `make`: a backup is created. `check`: a backup is verified."),
  name: t.String({ description: "The name of the backup being verified; empty while a backup is being created." }),
  started_at: time(),
  bytes: t.Integer({ description: "The number of bytes written or read so far." }),
  total_bytes: t.Integer({ description: "The estimated total number of bytes." }),
});
export type BackupWork = Static<typeof BackupWork>;

export const Backups = namedObject("Backups", {
  folder: t.String({ description: "The folder on the server that contains the backups." }),
  interval_ms: orNull(
    t.Integer(),
    "How often the server creates a backup automatically, in milliseconds; null if it doesn't.",
  ),
  keep: t.Integer({ description: "How many automatic backups are kept." }),
  work: t.Union([BackupWork, t.Null()], {
    description: "The backup being created or verified; null if no operation is in progress.",
  }),
  failure: t.String({ description: "Why the last requested operation failed; empty if it succeeded." }),
  backups: t.Array(Backup, { description: "The existing backups, newest first." }),
});
export type Backups = Static<typeof Backups>;
