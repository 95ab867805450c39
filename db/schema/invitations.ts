// People who were invited and have not come yet: what they are to get, and the hash of the link that lets them in once.
import { sql } from "drizzle-orm";
import { index, integer, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { organizationId, userId } from "./columns.ts";
import { quietTable } from "./touching.ts";

export const invitations = quietTable(
  "invitations",
  {
    id: text().primaryKey(),
    email: text().notNull(),
    name: text().notNull().default(""),
    /** SHA-256 of the link's token, hex. */
    token_hash: text().notNull(),
    /** Site roles. */
    roles: text({ mode: "json" }).$type<string[]>().notNull(),
    organization_id: organizationId(),
    organization_roles: text({ mode: "json" }).$type<string[]>().notNull(),
    group_ids: text({ mode: "json" }).$type<string[]>().notNull(),
    /** With whose rights the invitation gives all of it. */
    invited_by: userId(),
    created_at: integer().notNull(),
    expires_at: integer().notNull(),
    /** When the link last went out by email; null: it did not. */
    sent_at: integer(),
    /** Why it could not be sent; empty: nothing went wrong. */
    send_problem: text().notNull().default(""),
  },
  (table) => [
    uniqueIndex("invitations_email").on(sql`lower(${table.email})`),
    uniqueIndex("invitations_token").on(table.token_hash),
    index("invitations_created").on(table.created_at),
    index("invitations_inviter").on(table.invited_by),
  ],
);
