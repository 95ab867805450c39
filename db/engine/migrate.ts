// Forward-only migrations, embedded in the executable. An existing database is copied before it is changed. A database of a newer version,
// or from before 0.2.0, is rejected. Each migration is one transaction, so a kill leaves the old version intact.

import type { Database } from "bun:sqlite";
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { toRfc3339 } from "#base/clock.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import { flush } from "#base/system/flush.ts";
import { VERSION } from "#base/version.ts";
import { DatabaseVersionError, findVersionProblem, listMissingMigrations, type Migration } from "./migration.ts";
import { MIGRATIONS } from "./migrations.ts";

/** The time that an image (image.ts) records for its migrations, until the image becomes the database of a directory. */
export const IMAGE_TIME = 0;

/**
 * Migrates the database to the newest version. Before the first migration of a database with data, writes a consistent copy to
 * `<directory>/backups/before-<version>-<time>.db`, named after the program that changes it. Returns the names of the applied migrations.
 * Throws DatabaseVersionError.
 */
export const migrate = (
  db: Database,
  options: { directory: string; now: number; migrations?: readonly Migration[] },
): string[] => {
  const migrations = options.migrations ?? MIGRATIONS;
  const current = currentVersion(db);
  const problem = findVersionProblem(migrations, current);
  if (problem) throw new DatabaseVersionError(problem);
  db.run("update migrations set applied_at = ? where applied_at = ?", [options.now, IMAGE_TIME]);
  const missing = listMissingMigrations(migrations, current);
  if (missing.length > 0 && current > 0) {
    const copy = copyBeforeMigration(db, options.directory, options.now);
    log("db").info("the database was copied before the upgrade", { copy, schema: current });
  }
  for (const step of missing) {
    apply(db, step, options.now);
    // A new database has no upgrade to report.
    if (current > 0) log("db").info("upgrade step applied", { step: step.name, schema: step.version });
  }
  return missing.map(({ name }) => name);
};

/**
 * Applies one migration. Foreign keys are not enforced during the migration, as SQLite recommends: a migration that rebuilds a table drops
 * the old table, which would delete the rows that reference it. Foreign keys are checked before the commit. They are switched off before
 * the transaction, because a transaction cannot do that.
 */
const apply = (db: Database, step: Migration, now: number): void => {
  const { foreign_keys } = db.query("pragma foreign_keys").get() as { foreign_keys: number };
  db.run("pragma foreign_keys=off");
  try {
    db.run("begin immediate");
    for (const sql of step.sql.split("--> statement-breakpoint")) if (sql.trim()) db.run(sql);
    const broken = db.query("pragma foreign_key_check").all();
    if (broken.length > 0) throw new Error(`${broken.length} rows point to nothing: ${JSON.stringify(broken[0])}`);
    failpoint("in_migration");
    db.query("insert into migrations (version, name, applied_at) values (?, ?, ?)").run(step.version, step.name, now);
    db.run("commit");
  } catch (cause) {
    if (db.inTransaction) db.run("rollback");
    throw new Error(`migration ${step.name} failed`, { cause });
  } finally {
    db.run(`pragma foreign_keys=${foreign_keys}`);
  }
};

const currentVersion = (db: Database): number => {
  db.run(
    "create table if not exists migrations (version integer primary key, name text not null, applied_at integer not null)",
  );
  return (db.query("select coalesce(max(version), 0) as version from migrations").get() as { version: number }).version;
};

/** Returns the path of the copy. */
const copyBeforeMigration = (db: Database, directory: string, now: number): string => {
  mkdirSync(`${directory}/backups`, { recursive: true, mode: 0o700 });
  const file = `${directory}/backups/before-${VERSION}-${toRfc3339(now).replace(/[:.]/g, "-")}.db`;
  rmSync(`${file}.part`, { force: true });
  db.query("vacuum into ?").run(`${file}.part`);
  flush(`${file}.part`);
  renameSync(`${file}.part`, file);
  flush(`${directory}/backups`);
  return file;
};
