// Groups of members of an organization that share access.
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { declareTable } from "./cache-dependencies.ts";
import { organizationId, userId } from "./columns.ts";

/** The group of all members has the organization's ID, and a row only after one of its properties was set. */
export const groups = sqliteTable(
  "groups",
  {
    id: text().primaryKey(),
    organization_id: organizationId(),
    name: text().notNull(),
    display_name: text().notNull().default(""),
    avatar_url: text().notNull().default(""),
    /** Each member's allowance for the daily cost of their workspaces. */
    quota_allowance: integer().notNull().default(0),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [uniqueIndex("groups_name").on(table.organization_id, sql`lower(${table.name})`)],
);

/** The group of all members has no rows here. */
export const group_members = declareTable("callers", "workspaces")(
  "group_members",
  {
    group_id: text()
      .notNull()
      .references(() => groups.id),
    user_id: userId(),
    organization_id: organizationId(),
  },
  (table) => [
    primaryKey({ columns: [table.group_id, table.user_id] }),
    index("group_members_user").on(table.user_id, table.organization_id),
  ],
);
