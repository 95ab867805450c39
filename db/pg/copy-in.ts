// Moves an unused data directory into an empty PostgreSQL database: uploads first, then all rows in one transaction, so that a failed move
// changes nothing. Everything is read back and compared.
import type { ReservedSQL } from "bun";
import type { Bucket } from "#base/network/bucket.ts";
import { Blobs } from "../blobs.ts";
import { openDatabase } from "../engine/open.ts";
import type { Value } from "../engine/sql.ts";
import { listHashes } from "../templates/files.ts";
import { toBoundTexts } from "./bind.ts";
import { checkDatabase } from "./checks.ts";
import {
  Checksum,
  type CopiedTable,
  CopyError,
  insertText,
  listCopiedTables,
  quoteList,
  SEARCHES,
  WRITTEN_BY_TRIGGERS,
} from "./copied-tables.ts";
import { chunkRows, iterateTableRows, readSearchWords } from "./copy-sqlite.ts";
import { isInUse } from "./lease.ts";
import { migratePostgres } from "./migrate.ts";
import { Primary } from "./primary.ts";
import { openPgStore } from "./store.ts";
import { toStoredValue } from "./stored-value.ts";
import { checkUploads, openSharedBlobs } from "./uploads.ts";

export type CopyCounts = { readonly tables: number; readonly rows: number; readonly files: number };

export type CopyOptions = {
  readonly directory: string;
  /** postgres://user:password@host:port/database. Contains a password: never log it. */
  readonly url: string;
  readonly now: number;
  /** The cluster's bucket for uploads; undefined: they are in the database. */
  readonly bucket?: Bucket | undefined;
  /** Aborting it ends the move with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the name of each table that was copied and compared. */
  onTable?(table: string, rows: number): void;
};

/**
 * Moves the data. Throws CopyError, LockedError, DatabaseVersionError, UnsafeDatabaseError. Changes the data directory only by migrations.
 */
export const copyIntoPostgres = async ({
  directory,
  url,
  now,
  bucket,
  signal,
  onTable = () => {},
}: CopyOptions): Promise<CopyCounts> => {
  const { db, unlock } = openDatabase(directory, { cacheMb: 16, now });
  const primary = new Primary(url);
  try {
    const connection = await primary.writer();
    await checkDatabase(connection);
    await migratePostgres(connection, { now });
    await requireUnused(connection);
    await checkUploads(bucket, url);
    const store = await openPgStore({ url, now, fatal: () => {} });
    let files = 0;
    try {
      const sharedBlobs = openSharedBlobs(store, bucket);
      const blobs = new Blobs(directory);
      for (const hash of db
        .query(listHashes().sql)
        .values()
        .map(([one]) => String(one))) {
        signal?.throwIfAborted();
        const file = Bun.file(await blobs.getPath(hash));
        if (!(await file.exists())) continue;
        const hasher = new Bun.CryptoHasher("sha256");
        for await (const bytes of file.stream()) hasher.update(bytes);
        if (hasher.digest("hex") !== hash)
          throw new CopyError(`the upload files/${hash.slice(0, 2)}/${hash} is damaged`);
        await sharedBlobs.store({ hash, size: file.size }, file.name as string);
        files++;
      }
    } finally {
      await store.close();
    }
    const sql = await primary.writer();
    await sql.unsafe("set idle_in_transaction_session_timeout = 0").simple();
    await sql.unsafe("begin");
    let rows = 0;
    const tables = listCopiedTables();
    try {
      await sql.unsafe("set constraints all deferred");
      for (const table of tables) {
        if (table.name === WRITTEN_BY_TRIGGERS) await sql.unsafe(`delete from ${table.name}`);
        const count = await copyTable(sql, table, iterateTableRows(db, table), signal);
        rows += count;
        onTable(table.name, count);
      }
      for (const search of SEARCHES) {
        for (const chunk of chunkRows(readSearchWords(db, search))) await insertWords(sql, search, chunk);
      }
      await sql.unsafe("commit");
    } catch (error) {
      await sql.unsafe("rollback").catch(() => {});
      throw error;
    }
    return { tables: tables.length, rows, files };
  } finally {
    await primary.close();
    db.close();
    unlock();
  }
};

const requireUnused = async (sql: ReservedSQL): Promise<void> => {
  const [{ used }] = await sql.unsafe("select exists (select 1 from users) or exists (select 1 from settings) as used");
  if (await isInUse(sql)) throw new CopyError("a node runs on this PostgreSQL database: stop all of them first");
  if (used) throw new CopyError("this PostgreSQL database holds an installation already: name an empty one");
};

const copyTable = async (
  sql: ReservedSQL,
  table: CopiedTable,
  rows: Iterable<Value[]>,
  signal: AbortSignal | undefined,
): Promise<number> => {
  const [sent, received] = [new Checksum(), new Checksum()];
  for (const chunk of chunkRows(rows)) {
    signal?.throwIfAborted();
    for (const row of chunk) sent.add(row);
    const inserts = toBoundTexts({ sql: insertText(table), rows: chunk }).map(({ text, params }) =>
      sql.unsafe(text, params as never[]).execute(),
    );
    await Promise.all(inserts);
  }
  for await (const row of iteratePostgresRows(sql, table)) received.add(row);
  if (sent.text !== received.text) {
    throw new CopyError(`the table ${table.name} has not arrived as it was sent: ${sent.text} became ${received.text}`);
  }
  if (table.numbered !== undefined && sent.rows > 0) {
    await sql.unsafe(
      `select setval(pg_get_serial_sequence('${table.name}', '${table.numbered}'), (select max("${table.numbered}") from "${table.name}"))`,
    );
  }
  return sent.rows;
};

/** Yields all rows of a table in slices, within the transaction. */
export async function* iteratePostgresRows(sql: ReservedSQL, { name, columns }: CopiedTable): AsyncGenerator<Value[]> {
  await sql.unsafe(`declare copied cursor for select ${quoteList(columns)} from "${name}"`);
  for (;;) {
    const rows = (await sql.unsafe("fetch 500 from copied").values()) as unknown as unknown[][];
    for (const row of rows) yield row.map(toStoredValue);
    if (rows.length === 0) break;
  }
  await sql.unsafe("close copied");
}

const insertWords = async (sql: ReservedSQL, search: string, rows: readonly [bigint, string][]): Promise<void> => {
  const text = `insert into ${search} (rowid, words) values ($1, to_tsvector('simple', $2))`;
  await Promise.all(rows.map(([rowid, words]) => sql.unsafe(text, [rowid, words] as never[]).execute()));
};
