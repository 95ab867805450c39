// Moves a PostgreSQL installation back into a data directory without a database. Reads one snapshot; written data is read back and
// compared. A failed or killed move can be repeated.
import type { Database } from "bun:sqlite";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { ReservedSQL } from "bun";
import { hasKey, writeKey } from "#base/encryption.ts";
import { failpoint } from "#base/failpoint.ts";
import { finishCopy } from "../backup/snapshot.ts";
import { Blobs, type SharedBlobs } from "../blobs.ts";
import { KEY_NAME, loadSharedKey } from "../engine/key-check.ts";
import { toNewestVersion } from "../engine/migration.ts";
import { flush, hasDatabaseFile, Moving } from "../engine/move-installation.ts";
import { openDatabase } from "../engine/open.ts";
import type { Value } from "../engine/sql.ts";
import { listHashes } from "../templates/files.ts";
import { checkDatabase } from "./checks.ts";
import { Checksum, CopyError, listCopiedTables, SEARCHES } from "./copied-tables.ts";
import { type CopyCounts, type CopyOptions, iteratePostgresRows } from "./copy-in.ts";
import { clearTable, insertRows, iterateTableRows } from "./copy-sqlite.ts";
import { isInUse } from "./lease.ts";
import { PG_MIGRATIONS } from "./migrations.ts";
import { Primary } from "./primary.ts";
import { toStoredValue } from "./stored-value.ts";
import { checkUploads, openSharedBlobs } from "./uploads.ts";

/** `key`: the cluster's key in digits, stored next to the database if the directory has none. */
type Options = CopyOptions & { readonly key?: string | undefined };

/** Moves the data. Throws CopyError, EncryptionKeyError, LockedError, UnsafeDatabaseError. Does not change the PostgreSQL database. */
export const copyIntoSqlite = async (options: Options): Promise<CopyCounts> => {
  const { directory, url, now, bucket, signal } = options;
  if (hasDatabaseFile(directory)) {
    throw new CopyError(`${directory} holds a database already: name an empty folder with --data-dir`);
  }
  const key = hasKey(directory) ? undefined : options.key;
  const primary = new Primary(url);
  try {
    const sql = await primary.writer();
    await checkDatabase(sql);
    await sql.unsafe("set idle_in_transaction_session_timeout = 0").simple();
    await sql.unsafe("begin isolation level repeatable read read only");
    await rejectUnfit(sql, { directory, digits: key });
    await checkUploads(bucket, url);
    using moving = await Moving.begin(directory);
    const { db, file, unlock } = openDatabase(moving.path, { cacheMb: 16, now });
    let copied: CopyCounts;
    try {
      const [tables, rows] = await copyRows(sql, db, options);
      copied = {
        tables,
        rows,
        files: await copyUploads(db, openSharedBlobs(createReader(sql), bucket), moving.path, signal),
      };
    } finally {
      db.close();
      unlock();
    }
    finishCopy(file);
    await flush(file);
    if (key !== undefined) writeKey(moving.path, key);
    await moving.finish();
    return copied;
  } finally {
    await primary.close();
  }
};

const rejectUnfit = async (sql: ReservedSQL, key: { directory: string; digits: string | undefined }): Promise<void> => {
  const [{ version }] = await sql.unsafe("select max(version) as version from migrations");
  if (Number(version) !== toNewestVersion(PG_MIGRATIONS)) {
    throw new CopyError("this PostgreSQL database is of another version: start a node of this version on it once");
  }
  if (await isInUse(sql)) throw new CopyError("a node runs on this PostgreSQL database: stop all of them first");
  const [fingerprint] = await sql.unsafe("select value from settings where key = $1", [KEY_NAME]);
  if (fingerprint) loadSharedKey(key, fingerprint.value);
};

/** Copies all rows in one transaction, and returns the numbers of tables and rows. */
const copyRows = async (
  sql: ReservedSQL,
  db: Database,
  { signal, onTable = () => {} }: CopyOptions,
): Promise<[tables: number, rows: number]> => {
  db.run("pragma foreign_keys=off");
  db.run("begin");
  let rows = 0;
  const tables = listCopiedTables();
  for (const table of tables) {
    const [sent, received] = [new Checksum(), new Checksum()];
    clearTable(db, table.name);
    for await (const row of iteratePostgresRows(sql, table)) {
      signal?.throwIfAborted();
      failpoint("move_row");
      sent.add(row);
      insertRows(db, table, [row]);
    }
    for (const row of iterateTableRows(db, table)) received.add(row);
    if (sent.text !== received.text) {
      throw new CopyError(
        `the table ${table.name} has not arrived as it was sent: ${sent.text} became ${received.text}`,
      );
    }
    rows += sent.rows;
    onTable(table.name, sent.rows);
  }
  for (const search of SEARCHES) {
    // The words in the order of their positions, which PostgreSQL stores.
    const wordRows = await sql.unsafe(
      `select rowid, (select string_agg(lexeme, ' ' order by at) from unnest(words) w, unnest(w.positions) at) as words from ${search}`,
    );
    insertRows(
      db,
      { name: search, columns: ["rowid", "words"] },
      (wordRows as { rowid: bigint; words: string | null }[]).map((one) => [one.rowid, one.words ?? ""]),
    );
  }
  const broken = db.query("pragma foreign_key_check").values();
  if (broken.length > 0) throw new CopyError(`rows refer to others that are not there: ${JSON.stringify(broken[0])}`);
  db.run("commit");
  return [tables.length, rows];
};

/** Copies the uploads that the database references, compares and flushes them, and returns their number. */
const copyUploads = async (
  db: Database,
  sharedBlobs: SharedBlobs,
  directory: string,
  signal: AbortSignal | undefined,
): Promise<number> => {
  const blobs = new Blobs(directory);
  let files = 0;
  for (const [one] of db.query(listHashes().sql).values()) {
    signal?.throwIfAborted();
    const hash = String(one);
    const path = await blobs.getPath(hash);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    if (!(await sharedBlobs.copyTo(hash, path))) continue;
    const hasher = new Bun.CryptoHasher("sha256");
    for await (const bytes of Bun.file(path).stream()) hasher.update(bytes);
    if (hasher.digest("hex") !== hash) throw new CopyError(`the upload ${hash} has not arrived as it was sent`);
    await flush(path);
    failpoint("move_upload");
    files++;
  }
  return files;
};

/** Returns a reader of uploads within the transaction. */
const createReader = (sql: ReservedSQL): Parameters<typeof openSharedBlobs>[0] => {
  const listRows = async <T>(query: {
    sql: string;
    params: readonly Value[];
    map: (row: Value[]) => T;
  }): Promise<T[]> => {
    const text = query.sql.replace("?", "$1").replace("?", "$2");
    const rows = (await sql.unsafe(text, query.params as never[]).values()) as unknown as unknown[][];
    return rows.map((row) => query.map(row.map(toStoredValue)));
  };
  return { commit: async () => {}, all: listRows } as never;
};
