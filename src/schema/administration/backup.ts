// Wire shapes of backups of the server's data directory: existing ones, and the one being created or verified.
import { type Static, Type as t } from "@sinclair/typebox";
import { time } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

const orNull = <T extends ReturnType<typeof t.String> | ReturnType<typeof t.Integer>>(shape: T, description: string) =>
  t.Union([shape, t.Null()], { description });

export const Backup = namedObject("Backup", {
  name: t.String(),
  created_at: time(),
  bytes: t.Integer(),
  files: t.Integer(),
  version: t.String({
    description: "The version of the program that created it; empty if its manifest cannot be read.",
  }),
  problem: t.String({ description: "Why it cannot be used; empty if there is no known reason." }),
  checked_at: orNull(
    time(),
    "When it was last read whole by this process and found good or bad; null: not since the start.",
  ),
});
export type Backup = Static<typeof Backup>;

export const BackupWork = namedObject("BackupWork", {
  kind: oneOf(["make", "check"]),
  name: t.String({ description: "Name of the backup being verified; empty while one is being created." }),
  started_at: time(),
  bytes: t.Integer({ description: "The output so far." }),
  total_bytes: t.Integer({ description: "An estimate of the number." }),
});
export type BackupWork = Static<typeof BackupWork>;

export const Backups = namedObject("Backups", {
  folder: t.String(),
  interval_ms: orNull(t.Integer(), "How often the server creates one automatically; null: never."),
  keep: t.Integer({ description: "How many automatic backups are kept." }),
  work: t.Union([BackupWork, t.Null()], { description: "The backup or restore in progress." }),
  failure: t.String({ description: "Why the last requested operation failed; empty if it succeeded." }),
  backups: t.Array(Backup, { description: "Newest first." }),
});
export type Backups = Static<typeof Backups>;
