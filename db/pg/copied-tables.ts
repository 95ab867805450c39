// What is copied between a data directory and PostgreSQL, and in which order; and a checksum by which both sides are compared.
import { getTableConfig } from "drizzle-orm/sqlite-core";
import type { Value } from "../engine/sql.ts";
import { numberedColumn, tableConfigs } from "./tables.ts";

export type CopiedTable = {
  readonly name: string;
  readonly columns: readonly string[];
  /** The column that the database numbers. */
  readonly numbered: string | undefined;
};

/** The databases cannot be copied as asked; the message says why. */
export class CopyError extends Error {
  override readonly name = "CopyError";
}

/** Of each database itself: what has been done to it, and who may write. */
const OWN = new Set(["epoch", "migrations"]);

/** Triggers write into it while users are copied, so it comes behind them and what they wrote is removed. */
export const WRITTEN_BY_TRIGGERS = "user_status_changes";

/** Every table behind those that its rows refer to; rows of one table may refer to one another. */
export const copiedTables = (): CopiedTable[] => {
  const configs = new Map(tableConfigs().flatMap((one) => (OWN.has(one.name) ? [] : [[one.name, one] as const])));
  const ordered = new Map<string, CopiedTable>();
  const place = (name: string, above: ReadonlySet<string>): void => {
    const config = configs.get(name);
    if (!config || ordered.has(name) || above.has(name)) return;
    const next = new Set([...above, name]);
    for (const key of config.foreignKeys) place(getTableConfig(key.reference().foreignTable).name, next);
    if (name === WRITTEN_BY_TRIGGERS) place("users", next);
    const columns = config.columns.map((column) => column.name);
    ordered.set(name, { name, columns, numbered: numberedColumn(config) });
  };
  for (const name of configs.keys()) place(name, new Set());
  return [...ordered.values()];
};

/** The indices of words, which are no tables of the schema. */
export const SEARCHES = ["message_search", "title_search"] as const;

/** How many rows there are and what they hold, whatever their order. */
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

export const quotedList = (columns: readonly string[]): string => columns.map((one) => `"${one}"`).join(", ");
export const insertText = ({ name, columns }: Pick<CopiedTable, "name" | "columns">): string =>
  `insert into "${name}" (${quotedList(columns)}) values (${columns.map(() => "?").join(", ")})`;
