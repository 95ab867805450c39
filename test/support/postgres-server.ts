// The store of a test's server on PostgreSQL, with SLIPWAY_TEST_DATABASE=postgres: one database per data directory, copied from a database
// that a first start has filled, as test/support/prepared.ts does for SQLite.
import { SQL } from "bun";
import type { Config } from "#base/config.ts";
import { DatabaseBlobs } from "#db/pg/blobs.ts";
import { openPgStore, type PgStore } from "#db/pg/store.ts";
import { openContext } from "#src/context/open.ts";
import { usesStandbyNodes } from "./cluster/nodes.ts";
import { type CreatedDatabase, createDatabase } from "./postgres.ts";
import { CHEAP_HASH } from "./prepared.ts";

/** True if tests' servers store their data in PostgreSQL. */
export const usesPostgres = process.env.SLIPWAY_TEST_DATABASE === "postgres";

const databases = new Map<string, CreatedDatabase>();
let prepared: Promise<CreatedDatabase> | undefined;

const openStore = (url: string): Promise<PgStore> =>
  openPgStore({ url, now: Date.now(), fatal: () => {}, sendsNotices: usesStandbyNodes });

const prepare = async (config: Config, password: string): Promise<CreatedDatabase> => {
  const created = await createDatabase();
  const store = await openStore(created.url);
  const context = await openContext({ config, store });
  await context[Symbol.asyncDispose]();
  const hash = await Bun.password.hash(password, CHEAP_HASH);
  await using sql = new SQL(created.url, { max: 1 });
  await sql.unsafe("update users set password_hash = $1 where password_hash <> ''", [hash]);
  await sql.close();
  return created;
};

/** Opens the database of this data directory, and creates it if necessary. `isUsual`: with the data of a first start with `config`. */
export const openServersStore = async (
  directory: string,
  { config, password, isUsual }: { config: Config; password: string; isUsual: boolean },
) => {
  const database = await serversDatabase(directory, { config, password, isUsual });
  const store = await openStore(database);
  return { store, sharedBlobs: new DatabaseBlobs(store), database };
};

/** Returns the URL of that database, for nodes that open it themselves. */
export const serversDatabase = async (
  directory: string,
  { config, password, isUsual }: { config: Config; password: string; isUsual: boolean },
): Promise<string> => {
  let database = databases.get(directory);
  if (!database) {
    if (isUsual) prepared ??= prepare(config, password);
    database = await createDatabase(isUsual && prepared ? { like: (await prepared).name } : {});
    databases.set(directory, database);
  }
  return database.url;
};

/** Returns the URL of the database of this data directory; creates it without tables if necessary. */
export const ensureDatabase = async (directory: string): Promise<string> => {
  const database = databases.get(directory) ?? (await createDatabase({ empty: true }));
  databases.set(directory, database);
  return database.url;
};

/** Saves the database of this data directory. The returned function restores it. The server must be stopped both times. */
export const saveServerDatabase = (directory: string): Promise<() => Promise<void>> => {
  const database = databases.get(directory);
  if (!database) throw new Error(`${directory} has no database`);
  return database.save();
};

export const removeServersDatabase = async (directory: string): Promise<void> => {
  await databases.get(directory)?.remove();
  databases.delete(directory);
};
