// Forward-only migrations, embedded in the binary. An existing database is copied before it is changed, a database of a newer
// version is refused, and a kill in the middle leaves the old version whole: each step is one transaction.
import type { Database } from "bun:sqlite";
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { failpoint } from "#base/failpoint.ts";
import { MIGRATIONS } from "./migrations.ts";

export class NewerDatabaseError extends Error {
  override readonly name = "NewerDatabaseError";
}

export type Migration = { readonly name: string; readonly sql: string };

/**
 * Brings the database to the newest version. Before the first step on a database that holds data, a consistent copy is written to
 * `<directory>/backups/before-<version>-<milliseconds>.db`. Returns the names of the steps that were applied.
 */
export const migrate = (
  db: Database,
  options: { directory: string; now: number; migrations?: readonly Migration[] },
): string[] => {
  const migrations = options.migrations ?? MIGRATIONS;
  const current = currentVersion(db);
  if (current > migrations.length) {
    throw new NewerDatabaseError(
      `this database was written by a newer Slipway (schema ${current}, this one knows ${migrations.length}). ` +
        "Start the newer version again, or restore a backup made before the upgrade.",
    );
  }
  if (current === migrations.length) return [];
  if (current > 0) backUp(db, options.directory, current, options.now);
  const applied: string[] = [];
  for (let version = current; version < migrations.length; version++) {
    const step = migrations[version] as Migration;
    db.run("begin immediate");
    try {
      for (const sql of step.sql.split("--> statement-breakpoint")) if (sql.trim()) db.run(sql);
      failpoint("in_migration");
      db.query("insert into migrations (version, name, applied_at) values (?, ?, ?)").run(
        version + 1,
        step.name,
        options.now,
      );
      db.run("commit");
    } catch (error) {
      db.run("rollback");
      throw new Error(`migration ${step.name} failed`, { cause: error });
    }
    applied.push(step.name);
  }
  return applied;
};

const currentVersion = (db: Database): number => {
  db.run(
    "create table if not exists migrations (version integer primary key, name text not null, applied_at integer not null)",
  );
  return (db.query("select coalesce(max(version), 0) as version from migrations").get() as { version: number }).version;
};

const backUp = (db: Database, directory: string, version: number, now: number): void => {
  mkdirSync(`${directory}/backups`, { recursive: true, mode: 0o700 });
  const file = `${directory}/backups/before-${version + 1}-${now}.db`;
  rmSync(`${file}.part`, { force: true });
  db.query("vacuum into ?").run(`${file}.part`);
  renameSync(`${file}.part`, file);
};
