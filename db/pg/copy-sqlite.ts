// The SQLite side of copying an installation: reads and writes rows of an unused data directory in slices.
import type { Database } from "bun:sqlite";
import type { Value } from "../engine/sql.ts";
import { type CopiedTable, insertText, quoteList, type SEARCHES } from "./copied-tables.ts";

const CHUNK_ROWS = 500;
const CHUNK_BYTES = 1024 * 1024;

const measureRow = (row: readonly (Value | bigint)[]): number =>
  row.reduce<number>((sum, one) => sum + (typeof one === "string" || one instanceof Uint8Array ? one.length : 8), 0);

/** Groups rows into slices that are sent together. */
export function* chunkRows<Row extends readonly (Value | bigint)[]>(rows: Iterable<Row>): Generator<Row[]> {
  let chunk: Row[] = [];
  let bytes = 0;
  for (const row of rows) {
    chunk.push(row);
    bytes += measureRow(row);
    if (chunk.length < CHUNK_ROWS && bytes < CHUNK_BYTES) continue;
    yield chunk;
    chunk = [];
    bytes = 0;
  }
  if (chunk.length > 0) yield chunk;
}

export function* iterateTableRows(db: Database, { name, columns }: CopiedTable): Generator<Value[]> {
  const selection = columns.map((column, i) => `"${column}" as c${i}`).join(", ");
  for (const row of db.query(`select ${selection} from "${name}"`).iterate()) {
    yield Object.values(row as Record<string, Value>);
  }
}

/** Yields the indexed words by row. The indexes store no texts, so a row's words are reassembled in order. */
export function* readSearchWords(
  db: Database,
  search: (typeof SEARCHES)[number],
): Generator<[rowid: bigint, words: string]> {
  // Deleted entries are removed only by a complete merge.
  db.run(`insert into ${search} (${search}) values ('optimize')`);
  db.run(`create virtual table if not exists temp.${search}_words using fts5vocab('main', '${search}', 'instance')`);
  const rows = db.query(
    `select cast(v.doc as text) as doc, v.term as term from temp.${search}_words v where v.doc in (select rowid from ${search}) order by v.doc, v.offset`,
  );
  let last: string | undefined;
  let words: string[] = [];
  for (const row of rows.iterate()) {
    const { doc, term } = row as { doc: string; term: string };
    if (last !== undefined && doc !== last) {
      yield [BigInt(last), words.join(" ")];
      words = [];
    }
    last = doc;
    words.push(term);
  }
  if (last !== undefined) yield [BigInt(last), words.join(" ")];
}

export const insertRows = (
  db: Database,
  table: Pick<CopiedTable, "name" | "columns">,
  rows: Iterable<readonly (Value | bigint)[]>,
): void => {
  const statement = db.query(insertText(table));
  for (const row of rows) statement.run(...(row as never[]));
};

export const clearTable = (db: Database, name: string): void => void db.run(`delete from ${quoteList([name])}`);
