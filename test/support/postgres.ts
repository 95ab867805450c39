// Databases on the PostgreSQL of `.ci/postgres`, one per test, copied from a template that is migrated once per run.
import { SQL } from "bun";
import { openPgStore } from "#db/pg/store.ts";
import { needs } from "./needs.ts";

export type TestDatabase = {
  readonly name: string;
  readonly url: string;
  /** Ends all connections to the database, as if its node's process had ended. */
  cutConnections(): Promise<void>;
  remove(): Promise<void>;
};

/** A database created by this process. */
export type CreatedDatabase = TestDatabase & {
  /** Saves the content. The returned function restores it. No client may be connected either time. */
  save(): Promise<() => Promise<void>>;
};

let databaseCount = 0;
let migrated: Promise<string> | undefined;

const toDatabaseUrl = (name: string): string => {
  const url = new URL(needs.postgres.file);
  url.pathname = `/${name}`;
  return url.href;
};

/** Creates the template database of this process: copying it is faster than migrating each database. */
const makeTemplate = async (): Promise<string> => {
  const name = `slipway_${process.pid}_template`;
  const admin = new SQL(needs.postgres.file, { max: 1 });
  await dropEndedDatabases(admin);
  await admin.unsafe(`create database ${name} template template0 encoding 'utf8' locale 'C'`);
  await admin.close();
  const store = await openPgStore({ url: toDatabaseUrl(name), now: 0, fatal: () => {} });
  await store.close();
  return name;
};

/**
 * Drops databases of test processes that have ended: a process cannot wait for that when it exits, and the server's folder may be in
 * memory.
 */
const dropEndedDatabases = async (admin: SQL): Promise<void> => {
  const found: { datname: string }[] = await admin.unsafe(
    "select datname from pg_database where datname ~ '^slipway_\\d+_'",
  );
  for (const { datname } of found) {
    if (!isRunning(Number(datname.split("_")[1])))
      await admin.unsafe(`drop database if exists ${datname} with (force)`);
  }
};

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Creates a database of this version, or a copy of the database `like`. With `empty`, it has no tables. */
export const createDatabase = async ({
  empty = false,
  like,
}: {
  empty?: boolean;
  like?: string;
} = {}): Promise<CreatedDatabase> => {
  const name = `slipway_${process.pid}_${databaseCount++}`;
  if (!like && !empty) migrated ??= makeTemplate();
  const template = like ?? (empty ? "template0" : await migrated);
  const admin = new SQL(needs.postgres.file, { max: 1 });
  await admin.unsafe(`create database ${name} template ${template} encoding 'utf8' locale 'C'`);
  return {
    name,
    url: toDatabaseUrl(name),
    cutConnections: async () => {
      await admin.unsafe("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [name]);
    },
    save: async () => {
      const copy = `${name}_kept`;
      await admin.unsafe(`create database ${copy} template ${name}`);
      return async () => {
        await admin.unsafe(`drop database ${name}`);
        await admin.unsafe(`alter database ${copy} rename to ${name}`);
      };
    },
    remove: async () => {
      await admin.unsafe(`drop database if exists ${name} with (force)`);
      await admin.close();
    },
  };
};
