// Who was connected to which workspace, how, from where and for how long. A row is written when a connection begins and again when it
// ends; deleted only by retention (actors/connections/upkeep.ts). Refers to nothing: a row outlives what it tells of.
import { sql } from "drizzle-orm";
import { index, integer, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { ConnectionType } from "#schema/connections.ts";
import { quietTable } from "./touching.ts";

export const connection_logs = quietTable(
  "connection_logs",
  {
    /** In the order of commits: tells apart what began in the same millisecond. */
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    connect_time: integer().notNull(),
    /** Null while it is open. */
    disconnect_time: integer(),
    disconnect_reason: text().notNull().default(""),
    /** Of an HTTP answer, or of a program that has ended. */
    status_code: integer(),
    type: text().$type<ConnectionType>().notNull(),
    organization_id: text().notNull(),
    workspace_id: text().notNull(),
    /** As it was called then. */
    workspace_name: text().notNull(),
    owner_id: text().notNull(),
    agent_id: text().notNull(),
    agent_name: text().notNull(),
    /** By what its agent calls it; null for one that the server itself holds. */
    connection_id: text(),
    /** Null: nobody knows. */
    user_id: text(),
    ip: text(),
    user_agent: text().notNull().default(""),
    /** The app's slug, the port, or what an editor calls itself. */
    target: text().notNull().default(""),
  },
  (table) => [
    index("connection_logs_time").on(table.connect_time),
    index("connection_logs_organization").on(table.organization_id, table.connect_time),
    index("connection_logs_workspace").on(table.workspace_id, table.connect_time),
    index("connection_logs_owner").on(table.owner_id, table.connect_time),
    index("connection_logs_user").on(table.user_id, table.connect_time),
    index("connection_logs_type").on(table.type, table.connect_time),
    // Of what is open, which is little.
    index("connection_logs_open").on(table.agent_id).where(sql`${table.disconnect_time} is null`),
    uniqueIndex("connection_logs_reported").on(table.agent_id, table.connection_id),
  ],
);
