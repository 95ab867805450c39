// Home backups: copies of workspaces' files in a folder or a bucket. Written by the keeper of home backups, but for the first row of one that
// somebody asks for. What is stored says the same of itself, so that a machine without this database can read it.
import { sql } from "drizzle-orm";
import { index, integer, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { HomeBackupEngine, HomeBackupStatus } from "#schema/workspaces/home-backup.ts";
import { quietTable } from "./touching.ts";
import { workspaces } from "./workspaces.ts";

export const home_backups = quietTable(
  "home_backups",
  {
    /** Also the id of the snapshot that it is copied from, as long as that takes. */
    id: text().primaryKey(),
    workspace_id: text()
      .notNull()
      .references(() => workspaces.id),
    status: text().$type<HomeBackupStatus>().notNull(),
    engine: text().$type<HomeBackupEngine>(),
    /** The folder or bucket it is in. */
    location: text().notNull(),
    bytes: integer().notNull().default(0),
    added_bytes: integer().notNull().default(0),
    error: text().notNull().default(""),
    created_at: integer().notNull(),
    verified_at: integer(),
  },
  (table) => [
    index("home_backups_workspace").on(table.workspace_id, table.created_at),
    // One at a time: a second one is refused.
    uniqueIndex("home_backups_creating").on(table.workspace_id).where(sql`${table.status} = 'creating'`),
    index("home_backups_status").on(table.status),
  ],
);
