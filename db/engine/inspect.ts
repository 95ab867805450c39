// Looks at a data directory without changing it, while a server runs on it or not: for `doctor`, `migrate --check` and support bundles.
import { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Encryption } from "#base/encryption.ts";
import { LockedError } from "#base/lock-file.ts";
import { describeDamage, findDamage } from "./damage.ts";
import { lockDirectory } from "./lock.ts";
import { missingSteps, newestVersion, versionProblem } from "./migration.ts";
import { MIGRATIONS } from "./migrations.ts";
import { sealedElsewhere } from "./sealed.ts";

export type Inspected = {
  exists: boolean;
  /** The version of its schema, and the newest that this program knows. */
  schema: number;
  newest: number;
  /** Why this program cannot use the database. */
  problem?: string;
  /** The names of the steps that it lacks. */
  missing: string[];
  /** When the last one was applied, milliseconds since 1970; 0 for never. */
  migrated_at: number;
  database_bytes: number;
  wal_bytes: number;
};

export const inspectDatabase = (directory: string): Inspected => {
  const file = join(directory, "slipway.db");
  const newest = newestVersion(MIGRATIONS);
  const bytes = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const sizes = { newest, database_bytes: bytes(file), wal_bytes: bytes(`${file}-wal`) };
  const fresh = { exists: false, schema: 0, missing: MIGRATIONS.map(({ name }) => name), migrated_at: 0, ...sizes };
  if (!existsSync(file) || sizes.database_bytes + sizes.wal_bytes === 0) return fresh;
  return withDatabase(file, (db) => {
    const known = db.query("select 1 from sqlite_schema where name = 'migrations'").get();
    if (known === null) return fresh;
    const row = db
      .query("select coalesce(max(version), 0) as v, coalesce(max(applied_at), 0) as at from migrations")
      .get();
    const { v: schema, at: migrated_at } = row as { v: number; at: number };
    const missing = missingSteps(MIGRATIONS, schema).map(({ name }) => name);
    return { exists: true, schema, problem: versionProblem(MIGRATIONS, schema), missing, migrated_at, ...sizes };
  });
};

/** Returns the damage in words, as SQLite's quick check finds it; undefined for a sound database. Reads all of it. */
export const quickCheck = async (directory: string): Promise<string | undefined> => {
  using db = openToLook(join(directory, "slipway.db"));
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

/** What the database holds that this key, or none, does not open, in words; undefined: nothing. */
export const strangeSecrets = (directory: string, encryption?: Encryption): Promise<string | undefined> =>
  sealedElsewhere(encryption, async ({ sql, params, map }) =>
    withDatabase(
      join(directory, "slipway.db"),
      (db) =>
        db
          .query(sql)
          .values(...params)
          .map(map)[0],
    ),
  );

/** Bytes and rows on disk by table and index, the largest first. */
export const tableSizes = (directory: string): { name: string; bytes: number }[] =>
  withDatabase(join(directory, "slipway.db"), (db) =>
    (
      db.query("select name, sum(pgsize) as bytes from dbstat group by name order by bytes desc").all() as {
        name: string;
        bytes: number;
      }[]
    ).slice(0, 200),
  );

/** Whether a server runs on the directory. */
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

// Not opened as read-only: the log of a database that nobody has open can be read only by making its index again.
const openToLook = (file: string): Database => {
  const db = new Database(file, { readwrite: true, create: false });
  db.run("pragma busy_timeout=5000");
  return db;
};

const withDatabase = <T>(file: string, use: (db: Database) => T): T => {
  const db = openToLook(file);
  try {
    return use(db);
  } finally {
    db.close();
  }
};
