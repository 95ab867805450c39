// Wire shapes of backups of the server's data directory: existing ones, and the one being created or verified.
import { type Static, Type as t } from "@sinclair/typebox";
import { time } from "../fields.ts";
import { namedObject } from "../named.ts";
import { oneOf } from "../one-of.ts";

const orNull = <T extends ReturnType<typeof t.String> | ReturnType<typeof t.Integer>>(shape: T, description: string) =>
  t.Union([shape, t.Null()], { description });

export const Backup = namedObject("Backup", {
  name: t.String(),
  created_at: time(),
  bytes: t.Integer(),
  files: t.Integer(),
  version: t.String({ description: "Of the program that made it; empty when its manifest cannot be read." }),
  problem: t.String({ description: "Why it cannot be used; empty for none that is known." }),
  checked_at: orNull(
    time(),
    "When it was last read whole by this process and found good or bad; null: not since the start.",
  ),
});
export type Backup = Static<typeof Backup>;

export const BackupWork = namedObject("BackupWork", {
  kind: oneOf(["make", "check"]),
  name: t.String({ description: "Of the one that is checked; empty while one is made." }),
  started_at: time(),
  bytes: t.Integer({ description: "Written so far." }),
  total_bytes: t.Integer({ description: "About as many as it will be." }),
});
export type BackupWork = Static<typeof BackupWork>;

export const Backups = namedObject("Backups", {
  folder: t.String(),
  interval_ms: orNull(t.Integer(), "How often the server creates one automatically; null: never."),
  keep: t.Integer({ description: "How many automatic backups are kept." }),
  work: t.Union([BackupWork, t.Null()], { description: "The backup or restore in progress." }),
  failure: t.String({ description: "Why the last work that was asked for has failed; empty when it has not." }),
  backups: t.Array(Backup, { description: "Newest first." }),
});
export type Backups = Static<typeof Backups>;
