// The tables that are copied between a data directory and PostgreSQL, in order, and a checksum to compare both sides.
import { getTableConfig } from "drizzle-orm/sqlite-core";
import type { Value } from "../engine/sql.ts";
import { findIdentityColumn, listTableConfigs } from "./tables.ts";

export type CopiedTable = {
  readonly name: string;
  readonly columns: readonly string[];
  /** The column with generated numbers. */
  readonly numbered: string | undefined;
};

/** The databases cannot be copied; the message has the reason. */
export class CopyError extends Error {
  override readonly name = "CopyError";
}

/** Tables that are not copied, because they are about the database itself: its migrations, and which process may write. */
const EXCLUDED_TABLES = new Set(["epoch", "migrations"]);

/** Triggers write to this table while users are copied, so it is copied after them, and the rows from triggers are deleted. */
export const WRITTEN_BY_TRIGGERS = "user_status_changes";

/** Returns the tables in an order in which each table follows the tables that it references. Rows of one table may reference each other. */
export const listCopiedTables = (): CopiedTable[] => {
  const configs = new Map(
    listTableConfigs().flatMap((one) => (EXCLUDED_TABLES.has(one.name) ? [] : [[one.name, one] as const])),
  );
  const ordered = new Map<string, CopiedTable>();
  const addTable = (name: string, ancestors: ReadonlySet<string>): void => {
    const config = configs.get(name);
    if (!config || ordered.has(name) || ancestors.has(name)) return;
    const next = new Set([...ancestors, name]);
    for (const key of config.foreignKeys) addTable(getTableConfig(key.reference().foreignTable).name, next);
    if (name === WRITTEN_BY_TRIGGERS) addTable("users", next);
    const columns = config.columns.map((column) => column.name);
    ordered.set(name, { name, columns, numbered: findIdentityColumn(config) });
  };
  for (const name of configs.keys()) addTable(name, new Set());
  return [...ordered.values()];
};

/** The full-text indexes, which are not tables of the schema. */
export const SEARCHES = ["message_search", "title_search"] as const;

/** A checksum over the number and content of rows, independent of their order. */
export class Checksum {
  rows = 0;
  #sum = 0n;

  add(row: readonly Value[]): void {
    this.rows++;
    const text = JSON.stringify(row.map((value) => (value instanceof Uint8Array ? Bun.hash(value).toString() : value)));
    this.#sum = BigInt.asUintN(64, this.#sum + BigInt(Bun.hash(text)));
  }

  get text(): string {
    return `${this.rows} ${this.#sum.toString(16)}`;
  }
}

export const quoteList = (columns: readonly string[]): string => columns.map((one) => `"${one}"`).join(", ");
export const insertText = ({ name, columns }: Pick<CopiedTable, "name" | "columns">): string =>
  `insert into "${name}" (${quoteList(columns)}) values (${columns.map(() => "?").join(", ")})`;
