// Moves what is in PostgreSQL back into a data directory that has no database yet. All is read at one moment; what was written is read
// again and compared.
import { rmSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { Blobs } from "../blobs.ts";
import { inspectDatabase } from "../engine/inspect.ts";
import { openDatabase } from "../engine/open.ts";
import type { Value } from "../engine/sql.ts";
import { listHashes } from "../templates/files.ts";
import { checkDatabase } from "./checks.ts";
import { Checksum, CopyError, copiedTables, SEARCHES } from "./copied-tables.ts";
import { type Copied, type CopyOptions, rowsInPostgres } from "./copy-in.ts";
import { emptyTable, insertRows, rowsOfTable } from "./copy-sqlite.ts";
import { isInUse } from "./lease.ts";
import { PG_MIGRATIONS } from "./migrations.ts";
import { Primary } from "./primary.ts";
import { storedValue } from "./stored-value.ts";
import { checkUploads, keptElsewhere } from "./uploads.ts";

/** Throws CopyError, LockedError, UnsafeDatabaseError. The PostgreSQL database is left as it is. */
export const copyIntoSqlite = async ({ bucket, ...options }: CopyOptions): Promise<Copied> => {
  const { directory, url, now, onTable = () => {} } = options;
  if (inspectDatabase(directory).exists) {
    throw new CopyError(`${directory} holds a database already: name an empty folder with --data-dir`);
  }
  const primary = new Primary(url);
  try {
    const sql = await primary.writer();
    await checkDatabase(sql);
    await sql.unsafe("set idle_in_transaction_session_timeout = 0").simple();
    await sql.unsafe("begin isolation level repeatable read read only");
    const [{ version }] = await sql.unsafe("select max(version) as version from migrations");
    if (Number(version) !== PG_MIGRATIONS.length) {
      throw new CopyError("this PostgreSQL database is of another version: start a node of this version on it once");
    }
    if (await isInUse(sql)) throw new CopyError("a node runs on this PostgreSQL database: stop all of them first");
    await checkUploads(bucket, url);
    const { db, file, unlock } = openDatabase(directory, { cacheMb: 16, now });
    let isWhole = false;
    try {
      db.run("pragma foreign_keys=off");
      db.run("begin");
      let rows = 0;
      const tables = copiedTables();
      for (const table of tables) {
        const [sent, arrived] = [new Checksum(), new Checksum()];
        emptyTable(db, table.name);
        for await (const row of rowsInPostgres(sql, table)) {
          sent.add(row);
          insertRows(db, table, [row]);
        }
        for (const row of rowsOfTable(db, table)) arrived.add(row);
        if (sent.text !== arrived.text) {
          throw new CopyError(
            `the table ${table.name} has not arrived as it was sent: ${sent.text} became ${arrived.text}`,
          );
        }
        rows += sent.rows;
        onTable(table.name, sent.rows);
      }
      for (const search of SEARCHES) {
        // The places of words are kept as far as PostgreSQL keeps them.
        const words = await sql.unsafe(
          `select rowid, (select string_agg(lexeme, ' ' order by at) from unnest(words) w, unnest(w.positions) at) as words from ${search}`,
        );
        insertRows(
          db,
          { name: search, columns: ["rowid", "words"] },
          (words as { rowid: bigint; words: string | null }[]).map((one) => [one.rowid, one.words ?? ""]),
        );
      }
      const wrong = db.query("pragma foreign_key_check").values();
      if (wrong.length > 0) throw new CopyError(`rows refer to others that are not there: ${JSON.stringify(wrong[0])}`);
      db.run("commit");
      const reads = {
        commit: async () => {},
        all: async <T>(query: { sql: string; params: readonly Value[]; map: (row: Value[]) => T }) =>
          (
            (await sql
              .unsafe(query.sql.replace("?", "$1").replace("?", "$2"), query.params as never[])
              .values()) as unknown as unknown[][]
          ).map((row) => query.map(row.map(storedValue))),
      };
      const kept = keptElsewhere(reads as never, bucket);
      const blobs = new Blobs(directory);
      let files = 0;
      for (const hash of db
        .query(listHashes().sql)
        .values()
        .map(([one]) => String(one))) {
        const path = await blobs.pathOf(hash);
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        rmSync(path, { force: true });
        if (!(await kept.copyTo(hash, path))) continue;
        const hasher = new Bun.CryptoHasher("sha256");
        for await (const bytes of Bun.file(path).stream()) hasher.update(bytes);
        if (hasher.digest("hex") !== hash) throw new CopyError(`the upload ${hash} has not arrived as it was sent`);
        files++;
      }
      isWhole = true;
      return { tables: tables.length, rows, files };
    } finally {
      db.close();
      unlock();
      if (!isWhole) for (const name of [file, `${file}-wal`, `${file}-shm`]) rmSync(name, { force: true });
    }
  } finally {
    await primary.close();
  }
};
