// Who was connected to which workspace, how, from where and for how long. A row is written at the beginning and the end of a connection;
// deleted only by retention (actors/connections/upkeep.ts). References nothing: a row outlives its workspace.
import { sql } from "drizzle-orm";
import { index, integer, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { ConnectionType } from "#schema/connections.ts";
import { uncachedTable } from "./cache-dependencies.ts";

export const connection_logs = uncachedTable(
  "connection_logs",
  {
    /** In commit order, which distinguishes connections of the same millisecond. */
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    connect_time: integer().notNull(),
    /** Null while it is open. */
    disconnect_time: integer(),
    disconnect_reason: text().notNull().default(""),
    /** The status of an HTTP answer, or the exit code of a program. */
    status_code: integer(),
    type: text().$type<ConnectionType>().notNull(),
    organization_id: text().notNull(),
    workspace_id: text().notNull(),
    /** The workspace's name at that time. */
    workspace_name: text().notNull(),
    owner_id: text().notNull(),
    agent_id: text().notNull(),
    agent_name: text().notNull(),
    /** The agent's ID of the connection; null for a connection that the server itself holds. */
    connection_id: text(),
    /** Null if unknown. */
    user_id: text(),
    ip: text(),
    user_agent: text().notNull().default(""),
    /** The app's slug, the port, or the name that an editor reports. */
    target: text().notNull().default(""),
  },
  (table) => [
    index("connection_logs_time").on(table.connect_time),
    index("connection_logs_organization").on(table.organization_id, table.connect_time),
    index("connection_logs_workspace").on(table.workspace_id, table.connect_time),
    index("connection_logs_owner").on(table.owner_id, table.connect_time),
    index("connection_logs_user").on(table.user_id, table.connect_time),
    index("connection_logs_type").on(table.type, table.connect_time),
    // Open connections, which are few.
    index("connection_logs_open").on(table.agent_id).where(sql`${table.disconnect_time} is null`),
    uniqueIndex("connection_logs_reported").on(table.agent_id, table.connection_id),
  ],
);
