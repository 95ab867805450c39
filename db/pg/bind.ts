// Converts statements of a batch to PostgreSQL: texts and their parameters. Pure.
import type { Statement, Value } from "../engine/sql.ts";
import { toStorableValue } from "./stored-value.ts";
import { listTableConfigs } from "./tables.ts";
import { toPostgres } from "./text.ts";

/** A SQL text with its parameters, as sent over the connection. */
export type BoundText = { readonly text: string; readonly params: unknown[] };

const textCache = new Map<string, string>();

/** Makes the server raise an error if a guard does not change the expected rows, so that COMMIT can be sent before the count is known. */
const toPostgresText = (sql: string, expect: number | undefined): string => {
  const key = expect === undefined ? sql : `${expect}:${sql}`;
  let text = textCache.get(key);
  if (text === undefined) {
    text = toPostgres(sql);
    if (expect !== undefined) {
      text = `with changed as (${text} returning 1) select expect_rows((select count(*) from changed), ${expect})`;
    }
    textCache.set(key, text);
  }
  return text;
};

/** Returns the text of a read. */
export const queryText = (sql: string): string => toPostgresText(sql, undefined);

/** Minimum number of rows for which one statement with an array per column is cheaper than one statement per row. */
const MIN_UNNEST_ROWS = 8;
const PLAIN_INSERT = /^insert into "?(\w+)"? \(([^)]*)\) values \((?:\?, )*\?\)((?:, \((?:\?, )*\?\))*)$/;

/** Returns the texts that a statement sends: one text, or one per row. */
export const toBoundTexts = (statement: Statement): BoundText[] => {
  const { sql, rows, expect } = statement;
  const inserted = expect === undefined ? extractInsertedRows(statement) : undefined;
  const combined =
    inserted && inserted.rows.length >= MIN_UNNEST_ROWS
      ? toUnnestInsert(inserted.table, inserted.columns, inserted.rows)
      : undefined;
  if (combined) return [combined];
  const text = toPostgresText(sql, expect);
  return rows.map((row) => ({ text, params: row.map(toStorableValue) }));
};

type InsertedRows = { readonly table: string; readonly columns: string; readonly rows: readonly Value[][] };
type PlainInsert = { readonly table: string; readonly columns: string; readonly width: number };

const plainInsertCache = new Map<string, PlainInsert | null>();
const parsePlainInsert = (sql: string): PlainInsert | null => {
  let parsed = plainInsertCache.get(sql);
  if (parsed === undefined) {
    const [, table = "", columns = ""] = PLAIN_INSERT.exec(sql) ?? [];
    parsed = table === "" ? null : { table, columns, width: columns.split(",").length };
    plainInsertCache.set(sql, parsed);
  }
  return parsed;
};

/** Returns the rows that a plain insert adds, one by one, even if each execution inserts several. Undefined for other statements. */
export const extractInsertedRows = ({ sql, rows }: Statement): InsertedRows | undefined => {
  const plain = parsePlainInsert(sql);
  if (!plain) return undefined;
  const { table, columns, width } = plain;
  const singleRows = rows.flatMap((row) =>
    Array.from({ length: row.length / width }, (_, i) => row.slice(i * width, (i + 1) * width)),
  );
  return { table, columns, rows: singleRows };
};

/** Column types by table. */
let columnTypesByTable: Map<string, Map<string, string>> | undefined;
const getColumnTypes = (table: string): ReadonlyMap<string, string> | undefined => {
  columnTypesByTable ??= new Map(
    listTableConfigs().map(({ name, columns }) => [
      name,
      new Map(columns.map((column) => [column.name, ARRAY_TYPES[column.getSQLType().toLowerCase()] ?? ""])),
    ]),
  );
  return columnTypesByTable.get(table);
};
const ARRAY_TYPES: Readonly<Record<string, string>> = {
  integer: "bigint[]",
  text: "text[]",
  blob: "bytea[]",
  real: "double precision[]",
};

/**
 * Returns one statement with an array per column; undefined for a table outside of db/schema. `columnList`: the columns as in the text of
 * the insert.
 */
export const toUnnestInsert = (
  table: string,
  columnList: string,
  rows: readonly (readonly Value[])[],
): BoundText | undefined => {
  const columnTypes = getColumnTypes(table);
  if (!columnTypes) return undefined;
  const columns = columnList.split(",").map((name) => name.trim().replaceAll('"', ""));
  const casts = columns.map((name, i) => `$${i + 1}::${columnTypes.get(name)}`);
  return {
    text: `insert into "${table}" (${columnList}) select * from unnest(${casts.join(", ")})`,
    params: columns.map((_, i) => formatArray(rows.map((row) => row[i] ?? null))),
  };
};

/** Formats an array in PostgreSQL's text form. */
const formatArray = (values: readonly Value[]): string => `{${values.map(formatElement).join(",")}}`;

const formatElement = (value: Value): string => {
  if (value === null) return "null";
  if (typeof value === "string") return `"${String(toStorableValue(value)).replace(/[\\"]/g, "\\$&")}"`;
  if (value instanceof Uint8Array) return `"\\\\x${Buffer.from(value).toString("hex")}"`;
  return String(value);
};
