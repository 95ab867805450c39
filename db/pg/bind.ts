// Statements of a batch as what is sent to PostgreSQL: texts and their parameters. Pure.
import type { Statement, Value } from "../engine/sql.ts";
import { storableValue } from "./stored-value.ts";
import { tableConfigs } from "./tables.ts";
import { toPostgres } from "./text.ts";

/** One text with its parameters, as it goes over the connection. */
export type Sent = { readonly text: string; readonly params: unknown[] };

const texts = new Map<string, string>();

/** A guard that does not touch its rows is an error of the server, so that COMMIT can be sent before the count is known. */
const textOf = (sql: string, expect: number | undefined): string => {
  const key = expect === undefined ? sql : `${expect}:${sql}`;
  let text = texts.get(key);
  if (text === undefined) {
    text = toPostgres(sql);
    if (expect !== undefined) {
      text = `with changed as (${text} returning 1) select expect_rows((select count(*) from changed), ${expect})`;
    }
    texts.set(key, text);
  }
  return text;
};

/** The text of a read. */
export const queryText = (sql: string): string => textOf(sql, undefined);

/** From this many rows on, one statement with an array for each column is cheaper than one statement a row. */
const MANY_ROWS = 8;
const PLAIN_INSERT = /^insert into "?(\w+)"? \(([^)]*)\) values \((?:\?, )*\?\)$/;

/** What one statement of a batch sends: one text, or one for each row. */
export const sentOf = ({ sql, rows, expect }: Statement): Sent[] => {
  const whole = rows.length >= MANY_ROWS && expect === undefined ? unnested(sql, rows) : undefined;
  if (whole) return [whole];
  const text = textOf(sql, expect);
  return rows.map((row) => ({ text, params: row.map(storableValue) }));
};

/** Types of columns by table. */
let types: Map<string, Map<string, string>> | undefined;
const typesOf = (table: string): ReadonlyMap<string, string> | undefined => {
  types ??= new Map(
    tableConfigs().map(({ name, columns }) => [
      name,
      new Map(columns.map((column) => [column.name, ARRAY_TYPES[column.getSQLType().toLowerCase()] ?? ""])),
    ]),
  );
  return types.get(table);
};
const ARRAY_TYPES: Readonly<Record<string, string>> = {
  integer: "bigint[]",
  text: "text[]",
  blob: "bytea[]",
  real: "double precision[]",
};

const unnested = (sql: string, rows: Statement["rows"]): Sent | undefined => {
  const [, table = "", names = ""] = PLAIN_INSERT.exec(sql) ?? [];
  const known = typesOf(table);
  if (!known) return undefined;
  const columns = names.split(",").map((name) => name.trim().replaceAll('"', ""));
  const casts = columns.map((name, i) => `$${i + 1}::${known.get(name)}`);
  return {
    text: `insert into "${table}" (${names}) select * from unnest(${casts.join(", ")})`,
    params: columns.map((_, i) => arrayText(rows.map((row) => row[i] ?? null))),
  };
};

/** An array in PostgreSQL's text form. */
const arrayText = (values: readonly Value[]): string => `{${values.map(elementText).join(",")}}`;

const elementText = (value: Value): string => {
  if (value === null) return "null";
  if (typeof value === "string") return `"${String(storableValue(value)).replace(/[\\"]/g, "\\$&")}"`;
  if (value instanceof Uint8Array) return `"\\\\x${Buffer.from(value).toString("hex")}"`;
  return String(value);
};
