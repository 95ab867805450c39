// Migrations of a new database, of an older version with data and of a newer version, and a kill in the middle of a migration.

import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { configureLogging, resetLogging } from "#base/log.ts";
import { VERSION } from "#base/version.ts";
import { inspectDatabase } from "#db/engine/inspect.ts";
import { migrate } from "#db/engine/migrate.ts";
import { DatabaseVersionError, type Migration, toNewestVersion } from "#db/engine/migration.ts";
import { MIGRATIONS } from "#db/engine/migrations.ts";
import { openDatabase } from "#db/engine/open.ts";
import { ASKED_BY, CHATS_WITH_QUESTIONS } from "./chats-with-questions.ts";
import { temporaryDirectory } from "./deployments.ts";
import { describeSchema } from "./shape.ts";
import { STEPS } from "./steps.ts";

const NOW = 1_700_000_000_000;
const COPY = `before-${VERSION}-2023-11-14T22-13-20-000Z.db`;

const openEmpty = (directory: string): Database => {
  const db = new Database(join(directory, "slipway.db"), { create: true });
  db.run("pragma journal_mode=wal");
  db.run("pragma foreign_keys=on");
  return db;
};
const migrateTo = (db: Database, directory: string, migrations: readonly Migration[]): string[] =>
  migrate(db, { directory, now: NOW, migrations });
const listBackups = (directory: string): string[] => {
  try {
    return readdirSync(join(directory, "backups")).sort();
  } catch {
    return [];
  }
};
/** Creates a database of release 0.2.0. */
const openReleased = (directory: string): Database => {
  const db = openEmpty(directory);
  const schema = readFileSync(join(import.meta.dir, "released", "0.2.0.sql"), "utf8");
  for (const statement of schema.split("--> statement-breakpoint")) db.run(statement);
  return db;
};
/** Returns what the work logs. */
const captureLog = (work: () => void): unknown[] => {
  const lines: unknown[] = [];
  configureLogging({
    level: "info",
    format: "json",
    write: (line) => {
      const { message, copy, step, schema } = JSON.parse(line);
      lines.push({ message, copy, step, schema });
    },
  });
  try {
    work();
    return lines;
  } finally {
    resetLogging();
  }
};
const listPets = (db: Database): unknown =>
  db.query("select p.name, o.name as owner from pets p join owners o on o.id = p.owner").all();

describe("migrations", () => {
  test("[ST-13] a new database gets every migration, without a backup, and a second run does nothing", () => {
    using temp = temporaryDirectory();
    const db = openEmpty(temp.path);
    expect(migrateTo(db, temp.path, MIGRATIONS)).toEqual(MIGRATIONS.map((step) => step.name));
    expect(migrateTo(db, temp.path, MIGRATIONS)).toEqual([]);
    const applied = MIGRATIONS.map(({ name, version }) => ({ version, name, applied_at: NOW }));
    expect(db.query("select * from migrations").all()).toEqual(applied);
    expect(listBackups(temp.path)).toEqual([]);
    db.close();
  });

  test("[ST-13] an older database with data is copied first, then migrated", () => {
    using temp = temporaryDirectory();
    const db = openEmpty(temp.path);
    migrateTo(db, temp.path, STEPS.slice(0, 1));
    db.run("insert into owners values (1, 'ada')");
    db.run("insert into pets values (1, 1, 'rex')");
    const lines = captureLog(() =>
      expect(migrateTo(db, temp.path, STEPS)).toEqual(["0001_ages", "0002_owners_rebuilt"]),
    );
    expect(lines).toEqual([
      { message: "the database was copied before the upgrade", copy: join(temp.path, "backups", COPY), schema: 1 },
      { message: "upgrade step applied", step: "0001_ages", schema: 2 },
      { message: "upgrade step applied", step: "0002_owners_rebuilt", schema: 3 },
    ]);
    expect(db.query("select name, age from pets").all()).toEqual([{ name: "rex", age: 0 }]);
    db.close();

    expect(listBackups(temp.path)).toEqual([COPY]);
    const copy = new Database(join(temp.path, "backups", COPY));
    expect(copy.query("pragma integrity_check").values()).toEqual([["ok"]]);
    expect(copy.query("select max(version) from migrations").values()).toEqual([[1]]);
    expect(listPets(copy)).toEqual([{ name: "rex", owner: "ada" }]);
    copy.close();
  });

  test("[ST-13] a migration that rebuilds a table keeps the rows that reference it", () => {
    using temp = temporaryDirectory();
    const db = openEmpty(temp.path);
    migrateTo(db, temp.path, STEPS.slice(0, 2));
    db.run("insert into owners values (1, 'ada')");
    db.run("insert into pets values (1, 1, 'rex', 3)");
    migrateTo(db, temp.path, STEPS);
    expect(listPets(db)).toEqual([{ name: "rex", owner: "ada" }]);
    expect(db.query("pragma foreign_keys").values()).toEqual([[1]]);
    expect(() => db.run("delete from owners")).toThrow("NOT NULL constraint failed");
    db.close();
  });

  test("[ST-13] a migration that fails, or leaves dangling references, changes nothing, and the error names it", () => {
    using temp = temporaryDirectory();
    const db = openEmpty(temp.path);
    migrateTo(db, temp.path, STEPS);
    db.run("insert into owners values (1, 'ada', '')");
    db.run("insert into pets values (1, 1, 'rex', 3)");
    const version = STEPS.length + 1;
    const typo = "create table half (a);--> statement-breakpoint create tabel b (a)";
    const orphans = "create table half (a);--> statement-breakpoint delete from owners";
    for (const step of [
      { name: "0003_typo", sql: typo, version },
      { name: "0003_orphans", sql: orphans, version },
    ]) {
      expect(() => migrateTo(db, temp.path, [...STEPS, step])).toThrow(`migration ${step.name} failed`);
      expect(db.query("select name from sqlite_schema where name = 'half'").all()).toEqual([]);
      expect(listPets(db)).toEqual([{ name: "rex", owner: "ada" }]);
      expect(db.query("select max(version) from migrations").values()).toEqual([[STEPS.length]]);
    }
    db.close();
  });

  test("[ST-14] a database of a newer version is rejected with an explanation, and not changed", () => {
    using temp = temporaryDirectory();
    const { db, unlock } = openDatabase(temp.path, { cacheMb: 8, now: NOW });
    db.run("insert into migrations values (999, '0998_from_the_future', 1)");
    db.run("insert into settings values ('kept', '')");
    db.close();
    unlock();
    const open = () => openDatabase(temp.path, { cacheMb: 8, now: NOW });
    expect(open).toThrow(DatabaseVersionError);
    // The lock was released each time.
    expect(open).toThrow(/newer Slipway \(schema 999, this one knows \d+\)\. Start the newer version again/);
    const reopened = new Database(join(temp.path, "slipway.db"), { readonly: true });
    expect(reopened.query("select key from settings").values()).toEqual([["kept"]]);
    expect(listBackups(temp.path)).toEqual([]);
    reopened.close();
  });

  test("[ST-13] a database of 0.2.0 is upgraded directly, and then equals a new one", () => {
    using temp = temporaryDirectory();
    const db = openReleased(temp.path);
    db.run("insert into settings values ('kept', 'yes')");
    for (const insert of CHATS_WITH_QUESTIONS) db.run(insert);
    expect(migrateTo(db, temp.path, MIGRATIONS)).toEqual(MIGRATIONS.slice(1).map((step) => step.name));
    expect(db.query("select value from settings where key = 'kept'").values()).toEqual([["yes"]]);
    expect(db.query("select asked_by from chats order by key").values()).toEqual(ASKED_BY.map((name) => [name]));
    expect(db.query("select max(version) from migrations").values()).toEqual([[toNewestVersion(MIGRATIONS)]]);
    const fresh = new Database(":memory:");
    migrateTo(fresh, temp.path, MIGRATIONS);
    expect(describeSchema(db)).toEqual(describeSchema(fresh));
    db.close();
  });

  test("[ST-27] a database older than 0.2.0 is rejected with the upgrade path, and not changed", () => {
    using temp = temporaryDirectory();
    const db = openReleased(temp.path);
    db.run("delete from migrations where version > 15");
    db.close();
    const open = () => openDatabase(temp.path, { cacheMb: 8, now: NOW });
    expect(open).toThrow(DatabaseVersionError);
    expect(open).toThrow("older than 0.2.0 (schema 15, this one upgrades from 21). Start version 0.2.0 on it once");
    expect(inspectDatabase(temp.path)).toMatchObject({ schema: 15, problem: expect.stringContaining("0.2.0") });
    expect(listBackups(temp.path)).toEqual([]);
  });

  for (let step = 1; step <= STEPS.length; step++) {
    test(`[ST-13] after a kill in the middle of migration ${step}, the database is intact, and the next start completes the migration`, async () => {
      using temp = temporaryDirectory();
      const db = openEmpty(temp.path);
      // An older version with data, if there is one.
      migrateTo(db, temp.path, step > 1 ? STEPS.slice(0, 1) : []);
      if (step > 1) {
        db.run("insert into owners values (1, 'ada')");
        db.run("insert into pets values (1, 1, 'rex')");
      }
      db.close();
      const passes = step > 1 ? step - 1 : 1;
      const child = Bun.spawn(
        [process.execPath, join(import.meta.dir, "steps.ts"), temp.path, `in_migration:${passes}`],
        {
          stdout: "ignore",
          stderr: "inherit",
        },
      );
      await child.exited;
      expect(child.signalCode).toBe("SIGKILL");

      const after = openEmpty(temp.path);
      expect(after.query("pragma integrity_check").values()).toEqual([["ok"]]);
      expect(after.query("select coalesce(max(version), 0) from migrations").values()).toEqual([[step - 1]]);
      expect(migrateTo(after, temp.path, STEPS)).toEqual(STEPS.slice(step - 1).map((migration) => migration.name));
      expect(after.query("pragma foreign_key_check").all()).toEqual([]);
      if (step > 1) expect(listPets(after)).toEqual([{ name: "rex", owner: "ada" }]);
      after.close();
    });
  }
});
