// Reverts an upgrade of the database by a newer version of the program: the copy that the upgrade created replaces the database, and the
// newer database is kept next to it. Can be killed at any step and repeated.
import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, linkSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { flush } from "#base/system/flush.ts";
import { inspectDatabase } from "./inspect.ts";
import { lockDirectory } from "./lock.ts";
import { findVersionProblem } from "./migration.ts";
import { MIGRATIONS } from "./migrations.ts";

/** The newer program's database cannot be replaced, because no copy is usable by this program. */
export class NoUsableCopyError extends Error {
  override readonly name = "NoUsableCopyError";
}

export type RevertResult = {
  /** The path of the copy that has replaced the database. */
  copy: string;
  /** The path under which the newer program's database is kept. */
  kept: string;
};

/**
 * Replaces a database that is too new for this program with the newest usable copy of `backups/before-*.db`. Returns undefined if this
 * program can use the database as is. Throws LockedError while a server runs, NoUsableCopyError without a copy.
 */
export const revertToCopy = (directory: string): RevertResult | undefined => {
  const { exists, problem } = inspectDatabase(directory);
  if (!exists || problem === undefined) return undefined;
  const lock = lockDirectory(directory);
  try {
    const copy = findUsableCopy(directory);
    if (copy === undefined) {
      throw new NoUsableCopyError(
        `there is no copy of the database in ${join(directory, "backups")} that this program can use`,
      );
    }
    return replaceDatabase(directory, copy);
  } finally {
    lock.close();
  }
};

const findUsableCopy = (directory: string): string | undefined => {
  const folder = join(directory, "backups");
  if (!existsSync(folder)) return undefined;
  const toTimeSuffix = (name: string): string => name.slice(-"2026-01-01T00-00-00-000Z.db".length);
  const names = readdirSync(folder).filter((name) => /^before-.+\.db$/.test(name));
  return names
    .sort((a, b) => (toTimeSuffix(a) < toTimeSuffix(b) ? 1 : -1))
    .map((name) => join(folder, name))
    .find((path) => findVersionProblem(MIGRATIONS, readSchema(path)) === undefined);
};

const readSchema = (path: string): number => {
  const db = new Database(path, { readonly: true });
  try {
    return (db.query("select coalesce(max(version), 0) as v from migrations").get() as { v: number }).v;
  } finally {
    db.close();
  }
};

const replaceDatabase = (directory: string, copy: string): RevertResult => {
  const file = join(directory, "slipway.db");
  const partialPath = `${file}.back`;
  rmSync(partialPath, { force: true });
  copyFileSync(copy, partialPath);
  flush(partialPath);
  truncateLog(file);
  const newer = linkAsNewer(directory, file);
  // The log belongs to the newer database and would damage the copy.
  for (const suffix of ["-wal", "-shm"]) if (existsSync(file + suffix)) renameSync(file + suffix, newer + suffix);
  renameSync(partialPath, file);
  flush(directory);
  return { copy, kept: newer };
};

/** Checkpoints the log into the database. A damaged database keeps its log. */
const truncateLog = (file: string): void => {
  try {
    const db = new Database(file, { readwrite: true, create: false });
    try {
      db.run("pragma wal_checkpoint(truncate)");
    } finally {
      db.close();
    }
  } catch {
    // The file is kept unchanged after any error.
  }
};

/** Gives the database a second name (a hard link): the first free one. The original name stays until the copy replaces it. */
const linkAsNewer = (directory: string, file: string): string => {
  for (let i = 1; ; i++) {
    const path = join(directory, `newer-${i}.db`);
    if (existsSync(path)) continue;
    linkSync(file, path);
    return path;
  }
};
