// Statuses that apps report, such as an assistant's progress. Inserted by the agent actor; only the newest of each app are kept.
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const app_statuses = sqliteTable(
  "app_statuses",
  {
    /** Ascending, so that statuses of the same millisecond are ordered. */
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    agent_id: text().notNull(),
    app_id: text().notNull(),
    workspace_id: text().notNull(),
    /** working | idle | complete | failure */
    state: text().notNull(),
    message: text().notNull(),
    uri: text().notNull(),
    icon: text().notNull().default(""),
    needs_user_attention: integer({ mode: "boolean" }).notNull().default(false),
    created_at: integer().notNull(),
  },
  (table) => [
    index("app_statuses_app").on(table.app_id, table.key),
    index("app_statuses_agent").on(table.agent_id, table.key),
  ],
);
