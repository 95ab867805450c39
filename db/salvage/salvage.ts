// Copies the readable data of a damaged data directory into a new one. The damaged one is only read; repairs are made on a copy of its
// database. Rows that reference lost ones are omitted, so that the new database is consistent.
import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, statSync } from "node:fs";
import { cp, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { BackupError, DATABASE, KEY } from "../backup/manifest.ts";
import { finishCopy } from "../backup/snapshot.ts";
import { isDamage } from "../engine/damage.ts";
import { lockDirectory } from "../engine/lock.ts";
import { toNewestVersion } from "../engine/migration.ts";
import { MIGRATIONS } from "../engine/migrations.ts";
import { openDatabase } from "../engine/open.ts";
import type { Value } from "../engine/sql.ts";
import { type CopiedTable, insertText, listCopiedTables, SEARCHES } from "../pg/copied-tables.ts";
import { clearTable, insertRows, readSearchWords } from "../pg/copy-sqlite.ts";
import { type RepairResult, repairFirstPage } from "./first-page.ts";
import { forEachReadableRow } from "./readable-rows.ts";

export type SalvagedTable = {
  readonly name: string;
  readonly rows: number;
  /** Ranges of unreadable rows; `all` if the table was not found. */
  readonly unreadable: number | "all";
  /** Rows that were read but are invalid: impossible values, or references to lost rows. */
  readonly left_out: number;
};

export type SalvageResult = {
  readonly repaired: RepairResult;
  readonly tables: readonly SalvagedTable[];
  /** Whether search finds existing texts again, or only new ones. */
  readonly search: "whole" | "incomplete";
};

type Options = { readonly from: string; readonly into: string; readonly now: number; readonly signal: AbortSignal };

const COPY = "damaged.db";

/** Throws `BackupError` if there is nothing to salvage, or `into` is not empty; `LockedError` while a server runs. */
export const salvage = async ({ from, into, now, signal }: Options): Promise<SalvageResult> => {
  const source = join(from, DATABASE);
  if (!existsSync(source) || statSync(source).size === 0) throw new BackupError(`there is no database in ${from}`);
  if (existsSync(into) && (await readdir(into)).length > 0) {
    throw new BackupError(`${into} is not empty: name a folder that is empty or missing`);
  }
  const lock = lockDirectory(from);
  await mkdir(into, { recursive: true, mode: 0o700 });
  const working = join(into, ".salvage");
  try {
    await mkdir(working, { mode: 0o700 });
    const copy = join(working, COPY);
    copyFileSync(source, copy);
    if (existsSync(`${source}-wal`)) copyFileSync(`${source}-wal`, `${copy}-wal`);
    const { db, file, unlock } = openDatabase(into, { cacheMb: 16, now });
    let salvaged: SalvageResult;
    try {
      db.run("pragma wal_checkpoint(truncate)");
      const repaired = repairFirstPage(copy, file);
      using damaged = openDamaged(copy);
      salvaged = { repaired, ...copyAll(damaged, db, signal) };
    } finally {
      db.close();
      unlock();
    }
    finishCopy(file);
    for (const name of [KEY, "files"])
      if (existsSync(join(from, name))) await cp(join(from, name), join(into, name), { recursive: true });
    return salvaged;
  } catch (error) {
    await rm(into, { recursive: true, force: true });
    throw error;
  } finally {
    lock.close();
    await rm(working, { recursive: true, force: true });
  }
};

/** Opens the database for reading, whatever the state of its list of tables. */
const openDamaged = (file: string): Database => {
  const db = new Database(file, { readwrite: true, create: false });
  db.run("pragma writable_schema=on");
  db.run("pragma cell_size_check=on");
  return db;
};

const copyAll = (damaged: Database, db: Database, signal: AbortSignal): Omit<SalvageResult, "repaired"> => {
  refuseOtherVersion(damaged);
  db.run("pragma foreign_keys=off");
  db.run("begin");
  const copied = listCopiedTables().map((table) => {
    signal.throwIfAborted();
    return copyTable(damaged, db, table);
  });
  const search = SEARCHES.every((name) => copySearchIndex(damaged, db, name)) ? "whole" : "incomplete";
  const lost = removeDangling(db);
  db.run("commit");
  const tables = copied.map((one) => {
    const dangling = lost.get(one.name) ?? 0;
    return { ...one, rows: one.rows - dangling, left_out: one.left_out + dangling };
  });
  return { tables, search };
};

/** Rows of another version would not fit. An unreadable version is assumed to be this one. */
const refuseOtherVersion = (damaged: Database): void => {
  const newest = toNewestVersion(MIGRATIONS);
  let version = newest;
  try {
    const [row] = damaged.query("select max(version) from migrations").values();
    version = Number(row?.[0] ?? newest);
  } catch {
    return;
  }
  if (version === newest) return;
  throw new BackupError(
    `the database has schema ${version}, and this program knows ${newest}: use the version of Slipway that has written it`,
  );
};

const copyTable = (damaged: Database, db: Database, table: CopiedTable): SalvagedTable => {
  const { name, columns } = table;
  const statement = db.query(insertText(table));
  let [rows, left_out] = [0, 0];
  const insertRow = (values: Value[]): void => {
    try {
      statement.run(...(values as never[]));
      rows++;
    } catch (error) {
      if (!/^SQLITE_(CONSTRAINT|MISMATCH)/.test(String((error as { code?: unknown }).code))) throw error;
      left_out++;
    }
  };
  clearTable(db, name);
  try {
    const unreadable = forEachReadableRow(damaged, name, columns, insertRow);
    return { name, rows, unreadable, left_out };
  } catch (error) {
    if (!isDamage(error) && !/no such (table|column)/.test((error as Error).message)) throw error;
    return { name, rows, unreadable: "all", left_out };
  }
};

/** Returns false if some words are unreadable. */
const copySearchIndex = (damaged: Database, db: Database, name: (typeof SEARCHES)[number]): boolean => {
  try {
    insertRows(db, { name, columns: ["rowid", "words"] }, readSearchWords(damaged, name));
    return true;
  } catch {
    return false;
  }
};

/** Deletes rows that reference lost ones, until none does. Returns their number per table. */
const removeDangling = (db: Database): ReadonlyMap<string, number> => {
  const removed = new Map<string, number>();
  for (;;) {
    const found = db.query('select distinct "table", rowid from pragma_foreign_key_check').values();
    if (found.length === 0) return removed;
    for (const [table, rowid] of found as [string, number][]) {
      db.query(`delete from "${table}" where rowid = ?`).run(rowid);
      removed.set(table, (removed.get(table) ?? 0) + 1);
    }
  }
};
