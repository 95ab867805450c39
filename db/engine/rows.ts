// How reports read: one way for both databases.
import type { Database } from "bun:sqlite";
import type { Value } from "./sql.ts";

/** The rows of one query, in SQLite's words and values; all that one report asks is of one moment. */
export type Rows = (sql: string, params?: readonly Value[]) => Promise<Value[][]>;

/** Answers immediately: anyone who waits for it goes on in the same turn of the loop, so that no other query comes in between. */
export const makeRows =
  (db: Database): Rows =>
  (sql, params = []) =>
    Promise.resolve(db.query(sql).values(...(params as never[])) as Value[][]);
