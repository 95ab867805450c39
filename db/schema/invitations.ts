// People who were invited and have not accepted yet: what they will get, and the hash of their one-time link.
import { sql } from "drizzle-orm";
import { index, integer, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { organizationId, userId } from "./columns.ts";

export const invitations = uncachedTable(
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
    /** The user whose permissions the invitation is based on. */
    invited_by: userId(),
    created_at: integer().notNull(),
    expires_at: integer().notNull(),
    /** When the link was last sent by email; null: never. */
    sent_at: integer(),
    /** Why it could not be sent; empty for no problem. */
    send_problem: text().notNull().default(""),
  },
  (table) => [
    uniqueIndex("invitations_email").on(sql`lower(${table.email})`),
    uniqueIndex("invitations_token").on(table.token_hash),
    index("invitations_created").on(table.created_at),
    index("invitations_inviter").on(table.invited_by),
  ],
);
