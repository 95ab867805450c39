// The common interface with which reports read from SQLite and PostgreSQL.
import type { Database } from "bun:sqlite";
import type { Value } from "./sql.ts";

/** Returns the rows of a query, in SQLite's dialect and values. All queries of a report read one snapshot. */
export type ReadRows = (sql: string, params?: readonly Value[]) => Promise<Value[][]>;

/** Returns a reader that resolves in the same turn of the event loop, so that no other query runs in between. */
export const makeRowReader =
  (db: Database): ReadRows =>
  (sql, params = []) =>
    Promise.resolve(db.query(sql).values(...(params as never[])) as Value[][]);
