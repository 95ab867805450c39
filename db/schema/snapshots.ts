// Snapshots of workspaces: copies of their files at one moment. Written by the workspace actor only, and gone with the workspace. The files
// themselves are where the provisioner has put them.
import { index, integer, text } from "drizzle-orm/sqlite-core";
import type { SnapshotMethod, SnapshotReason } from "#schema/workspaces/snapshot.ts";
import { quietTable } from "./touching.ts";
import { workspaces } from "./workspaces.ts";

export const workspace_snapshots = quietTable(
  "workspace_snapshots",
  {
    id: text().primaryKey(),
    workspace_id: text()
      .notNull()
      .references(() => workspaces.id),
    name: text().notNull().default(""),
    reason: text().$type<SnapshotReason>().notNull(),
    /** What is stored; `restoring` follows from a build that is active. */
    status: text().$type<"creating" | "ready" | "failed" | "deleting">().notNull(),
    /** The provisioner that keeps the files. */
    provisioner: text().notNull(),
    /** The home backup that the files come from; null: the workspace. */
    home_backup_id: text(),
    method: text().$type<SnapshotMethod>(),
    /** What a module of the template has made for it, and what removes it: sealed (db/workspaces/snapshot-state.ts). Empty for files. */
    sealed_state: text().notNull().default(""),
    bytes: integer().notNull().default(0),
    error: text().notNull().default(""),
    created_by: text().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [
    index("workspace_snapshots_workspace").on(table.workspace_id, table.created_at),
    index("workspace_snapshots_status").on(table.status),
  ],
);
