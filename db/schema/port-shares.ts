// Ports of workspaces that others may open. The key is the agent's name, so a share outlives the builds of its workspace; written by
// the workspace actor only, and gone with the workspace.
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
  },
  (table) => [primaryKey({ columns: [table.workspace_id, table.agent_name, table.port] })],
);
