// Shared ports of workspaces. The key contains the agent's name, so a share outlives builds; written only by the workspace actor, and
// deleted with the workspace.
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { ShareLevel } from "#schema/workspaces/port-share.ts";
import { workspaces } from "./workspaces.ts";

export const port_shares = sqliteTable(
  "port_shares",
  {
    workspace_id: text()
      .notNull()
      .references(() => workspaces.id),
    agent_name: text().notNull(),
    port: integer().notNull(),
    protocol: text().$type<"http" | "https">().notNull(),
    share_level: text().$type<ShareLevel>().notNull(),
    /** The user who shared the port, if not the workspace's owner; otherwise null. */
    shared_by: text(),
  },
  (table) => [primaryKey({ columns: [table.workspace_id, table.agent_name, table.port] })],
);
