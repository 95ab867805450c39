// Snapshots of workspaces: copies of their files at one moment. Written only by the workspace actor, and deleted with the workspace. The
// provisioner stores the files.
import { index, integer, text } from "drizzle-orm/sqlite-core";
import type { SnapshotMethod, SnapshotReason } from "#schema/workspaces/snapshot.ts";
import { uncachedTable } from "./cache-dependencies.ts";
import { workspaces } from "./workspaces.ts";

export const workspace_snapshots = uncachedTable(
  "workspace_snapshots",
  {
    id: text().primaryKey(),
    workspace_id: text()
      .notNull()
      .references(() => workspaces.id),
    name: text().notNull().default(""),
    reason: text().$type<SnapshotReason>().notNull(),
    /** The stored status; `restoring` is derived from an active build. */
    status: text().$type<"creating" | "ready" | "failed" | "deleting">().notNull(),
    /** The provisioner that stores the files. */
    provisioner: text().notNull(),
    /** The home backup that contains the files; null: the workspace. */
    home_backup_id: text(),
    method: text().$type<SnapshotMethod>(),
    /**
     * What a module of the template has created for it, and how to delete that: encrypted (db/workspaces/snapshot-state.ts). Empty for
     * files.
     */
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
