// Home backups: copies of workspaces' files in a folder or a bucket. Written by the keeper of home backups, except the first row of a
// requested one. The stored backup contains the same data, so that a machine without this database can read it.
import { sql } from "drizzle-orm";
import { index, integer, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { HomeBackupEngine, HomeBackupStatus } from "#schema/workspaces/home-backup.ts";
import { uncachedTable } from "./cache-dependencies.ts";
import { workspaces } from "./workspaces.ts";

export const home_backups = uncachedTable(
  "home_backups",
  {
    /** Also the ID of the temporary snapshot that it is copied from. */
    id: text().primaryKey(),
    workspace_id: text()
      .notNull()
      .references(() => workspaces.id),
    status: text().$type<HomeBackupStatus>().notNull(),
    engine: text().$type<HomeBackupEngine>(),
    /** The folder or bucket that contains it. */
    location: text().notNull(),
    bytes: integer().notNull().default(0),
    added_bytes: integer().notNull().default(0),
    error: text().notNull().default(""),
    created_at: integer().notNull(),
    verified_at: integer(),
  },
  (table) => [
    index("home_backups_workspace").on(table.workspace_id, table.created_at),
    // One at a time; a second one is rejected.
    uniqueIndex("home_backups_creating").on(table.workspace_id).where(sql`${table.status} = 'creating'`),
    index("home_backups_status").on(table.status),
  ],
);
