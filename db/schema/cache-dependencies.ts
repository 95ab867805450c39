// Declares with each table which cached answers contain its rows. A statement touches what its table touches, and increments the store's
// versions (`shownVersion`, `callersVersion`, `getVersion`).
import { type SQLiteTable, sqliteTable } from "drizzle-orm/sqlite-core";

/**
 * workspaces: lists of workspaces, and each of them. agents: the workspace of the row's agent. callers: the identity and permissions of
 * callers. audit: the audit log. lines: lines of agent logs, which no cached answer contains, and which PostgreSQL gets in bulk
 * (db/pg/gather.ts); a write that only reads them touches them too.
 */
export type Touch = "workspaces" | "agents" | "callers" | "audit" | "lines";

const declared = new WeakMap<SQLiteTable, readonly Touch[]>();

/**
 * Returns a table constructor that also declares what the table touches. Tables of plain `sqliteTable` touch workspaces, which is always
 * safe.
 */
export const declareTable = (...touches: readonly Touch[]): typeof sqliteTable =>
  ((...definition: Parameters<typeof sqliteTable>) => {
    const table = sqliteTable(...definition);
    declared.set(table, touches);
    return table;
  }) as typeof sqliteTable;

/** A table whose rows are in no cached answer. */
export const uncachedTable = declareTable();
/** A table whose rows belong to one agent. */
export const agentTable = declareTable("agents");
/** A table of log lines. */
export const linesTable = declareTable("lines");
/** A table that only affects the identity of callers. */
export const callerTable = declareTable("callers");

export const listTouches = (table: SQLiteTable): readonly Touch[] => declared.get(table) ?? ["workspaces"];
