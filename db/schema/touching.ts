// What a table's rows are shown in, said where the table is. A statement touches what its table touches; anyone who keeps an answer hears of
// it by a version of the store (`shownVersion`, `callersVersion`, `versionOf`).
import { type SQLiteTable, sqliteTable } from "drizzle-orm/sqlite-core";

/**
 * workspaces: lists of workspaces, and each of them. agents: one workspace, that of the agent the row belongs to. callers: who a caller is
 * and what they may do. audit: the audit log. lines: those of agents' logs, which are in no answer that is kept, and of which
 * PostgreSQL gets many at once (db/pg/gather.ts); who only reads them in a write touches them, too.
 */
export type Touch = "workspaces" | "agents" | "callers" | "audit" | "lines";

const declared = new WeakMap<SQLiteTable, readonly Touch[]>();

/** A table that says so; one made by `sqliteTable` touches workspaces, which is never wrong. */
export const tableTouching = (...touches: readonly Touch[]): typeof sqliteTable =>
  ((...definition: Parameters<typeof sqliteTable>) => {
    const table = sqliteTable(...definition);
    declared.set(table, touches);
    return table;
  }) as typeof sqliteTable;

/** A table whose rows are in no answer that is kept. */
export const quietTable = tableTouching();
/** A table of rows that belong to one agent. */
export const agentTable = tableTouching("agents");
/** A table of lines of logs. */
export const linesTable = tableTouching("lines");
/** A table that only decides who a caller is. */
export const callerTable = tableTouching("callers");

export const listTouches = (table: SQLiteTable): readonly Touch[] => declared.get(table) ?? ["workspaces"];
