// Inspects a data directory without changing it, with or without a running server: for `doctor`, `migrate --check` and support bundles.
import { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Encryption } from "#base/encryption.ts";
import { LockedError } from "#base/lock-file.ts";
import { describeDamage, findDamage } from "./damage.ts";
import { describeUndecryptable } from "./key-check.ts";
import { lockDirectory } from "./lock.ts";
import { findVersionProblem, listMissingMigrations, toNewestVersion } from "./migration.ts";
import { MIGRATIONS } from "./migrations.ts";

export type DatabaseInspection = {
  exists: boolean;
  /** The version of the schema, and the newest version that this program knows. */
  schema: number;
  newest: number;
  /** Why this program cannot use the database. */
  problem?: string;
  /** The names of the missing migrations. */
  missing: string[];
  /** When the last migration was applied, in milliseconds since 1970; 0 for never. */
  migrated_at: number;
  database_bytes: number;
  wal_bytes: number;
};

export const inspectDatabase = (directory: string): DatabaseInspection => {
  const file = join(directory, "slipway.db");
  const newest = toNewestVersion(MIGRATIONS);
  const getSize = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const sizes = { newest, database_bytes: getSize(file), wal_bytes: getSize(`${file}-wal`) };
  const emptyResult = {
    exists: false,
    schema: 0,
    missing: MIGRATIONS.map(({ name }) => name),
    migrated_at: 0,
    ...sizes,
  };
  if (!existsSync(file) || sizes.database_bytes + sizes.wal_bytes === 0) return emptyResult;
  return withDatabase(file, (db) => {
    const migrationsTable = db.query("select 1 from sqlite_schema where name = 'migrations'").get();
    if (migrationsTable === null) return emptyResult;
    const row = db
      .query("select coalesce(max(version), 0) as v, coalesce(max(applied_at), 0) as at from migrations")
      .get();
    const { v: schema, at: migrated_at } = row as { v: number; at: number };
    const missing = listMissingMigrations(MIGRATIONS, schema).map(({ name }) => name);
    return { exists: true, schema, problem: findVersionProblem(MIGRATIONS, schema), missing, migrated_at, ...sizes };
  });
};

/** Returns the damage that SQLite's quick check finds, as text; undefined for an intact database. Reads the whole file. */
export const runQuickCheck = async (directory: string): Promise<string | undefined> => {
  using db = openForInspection(join(directory, "slipway.db"));
  try {
    const damage = await findDamage(async (sql, ...params) =>
      db
        .query(sql)
        .values(...params)
        .map(([first]) => String(first)),
    );
    return damage && describeDamage(damage);
  } catch (error) {
    return (error as Error).message;
  }
};

/** Describes the secrets that this key cannot decrypt; undefined if it can decrypt all. Without a key, describes all secrets. */
export const describeUndecryptableSecrets = (directory: string, encryption?: Encryption): Promise<string | undefined> =>
  describeUndecryptable(encryption, async ({ sql, params, map }) =>
    withDatabase(
      join(directory, "slipway.db"),
      (db) =>
        db
          .query(sql)
          .values(...params)
          .map(map)[0],
    ),
  );

/** Returns the bytes on disk of each table and index, largest first. */
export const measureTables = (directory: string): { name: string; bytes: number }[] =>
  withDatabase(join(directory, "slipway.db"), (db) =>
    (
      db.query("select name, sum(pgsize) as bytes from dbstat group by name order by bytes desc").all() as {
        name: string;
        bytes: number;
      }[]
    ).slice(0, 200),
  );

/** Returns whether a server runs on the directory. */
export const isInUse = (directory: string): boolean => {
  if (!existsSync(join(directory, "lock"))) return false;
  try {
    lockDirectory(directory).close();
    return false;
  } catch (error) {
    if (error instanceof LockedError) return true;
    throw error;
  }
};

// Not opened as read-only: if no other process has the database open, its log is readable only by recreating the log's index.
const openForInspection = (file: string): Database => {
  const db = new Database(file, { readwrite: true, create: false });
  db.run("pragma busy_timeout=5000");
  return db;
};

const withDatabase = <T>(file: string, use: (db: Database) => T): T => {
  const db = openForInspection(file);
  try {
    return use(db);
  } finally {
    db.close();
  }
};
