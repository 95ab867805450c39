// The stored data of a test server, read from outside: its data directory, and its SQLite or PostgreSQL database.
import { Database } from "bun:sqlite";
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { usesActiveNodes } from "./cluster/active-nodes.ts";
import { ensureDatabase, saveServerDatabase, usesPostgres } from "./postgres-server.ts";

export type StoredData = AsyncDisposable & {
  /** Returns the rows of a query that works on both databases; integers are numbers. */
  rows(sql: string): Promise<unknown[][]>;
  /** Returns the rows as objects with column names. */
  objects<T>(sql: string): Promise<T[]>;
  run(sql: string): Promise<void>;
  tables(): Promise<string[]>;
  /** Returns a value that changes whenever another connection commits, and possibly more often. */
  version(): Promise<string>;
};

/** Tables that active nodes update without requests: leases, heartbeats, and numbers of recent changes. */
const NODE_TABLES = ["fences", "lease", "leases", "nodes", "parts", "versions", "workspace_versions"];

/** Returns true if only requests change a table, so that it stays the same between requests. */
export const isWrittenByRequests = (table: string): boolean => !(usesActiveNodes && NODE_TABLES.includes(table));

/** Opens the database of a data directory, whether or not its server is running. */
export const openStoredData = async (directory: string): Promise<StoredData> =>
  usesPostgres ? openPostgres(await ensureDatabase(directory)) : openSqlite(join(directory, "slipway.db"));

/** Saves the stored data of a data directory. The returned function restores it. The server must be stopped properly both times. */
export const saveStoredData = async (directory: string): Promise<() => Promise<void>> => {
  if (usesPostgres) return await saveServerDatabase(directory);
  const file = join(directory, "slipway.db");
  await using stored = await openStoredData(directory);
  // A stop may leave the last commits in the write-ahead log, which a copy of the file alone would miss.
  await stored.run("pragma wal_checkpoint(truncate)");
  const saved = readFileSync(file);
  return async () => {
    for (const name of ["-wal", "-shm"]) rmSync(file + name, { force: true });
    await Bun.write(file, saved);
  };
};

/** Returns all stored data of a data directory as text: each file, and on PostgreSQL each table, starting with its name. */
export const readStoredTexts = async (directory: string): Promise<string[]> => {
  const paths = readdirSync(directory, { recursive: true, encoding: "utf8" }).map((name) => join(directory, name));
  const files = paths.filter((file) => existsSync(file) && statSync(file).isFile());
  const texts = files.map((file) => readFileSync(file, "latin1"));
  if (!usesPostgres) return texts;
  await using stored = await openStoredData(directory);
  for (const table of await stored.tables()) {
    const rows = await stored.rows(`select t::text from "${table}" t`);
    texts.push([table, ...rows.flat()].join("\n"));
  }
  return texts;
};

const openSqlite = (file: string): StoredData => {
  const database = new Database(file);
  database.run("pragma busy_timeout = 5000");
  return {
    rows: async (sql) => database.query(sql).values(),
    objects: async <T>(sql: string) => database.query<T, []>(sql).all(),
    run: async (sql) => void database.run(sql),
    tables: async () =>
      database.query("select name from sqlite_schema where type = 'table' order by name").values().flat().map(String),
    version: async () => JSON.stringify(database.query("pragma data_version").get()),
    [Symbol.asyncDispose]: async () => database.close(),
  };
};

const openPostgres = (url: string): StoredData => {
  const sql = new SQL(url, { max: 1, bigint: true });
  const rows = async (text: string): Promise<unknown[][]> => {
    const found = (await sql.unsafe(text).values()) as unknown[][];
    return found.map((row) => row.map(toPlainValue));
  };
  return {
    rows,
    objects: async <T>(text: string) => {
      const found = (await sql.unsafe(text)) as object[];
      return found.map(
        (row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toPlainValue(value)])) as T,
      );
    },
    run: async (text) => void (await sql.unsafe(text)),
    tables: async () =>
      (await rows("select tablename from pg_tables where schemaname = 'public' order by 1")).flat().map(String),
    version: async () => String(await rows("select pg_snapshot_xmax(pg_current_snapshot())::text")),
    [Symbol.asyncDispose]: () => sql.close(),
  };
};

const toPlainValue = (value: unknown): unknown => (typeof value === "bigint" ? Number(value) : value);
