// Accounts at OpenID Connect providers that sign a user in, and the sessions that such sign-ins have made.
import { index, integer, primaryKey, text } from "drizzle-orm/sqlite-core";
import { userId } from "./columns.ts";
import { quietTable } from "./touching.ts";
import { api_keys } from "./users.ts";

export const oidc_links = quietTable(
  "oidc_links",
  {
    issuer: text().notNull(),
    /** The person's id there, the claim `sub`: never given to another. */
    subject: text().notNull(),
    user_id: userId(),
    created_at: integer().notNull(),
    /** What the provider called the person at the last sign-in: only a change there changes the account. Null: not known yet. */
    username: text(),
    name: text(),
  },
  (table) => [primaryKey({ columns: [table.issuer, table.subject] }), index("oidc_links_user").on(table.user_id)],
);

export const oidc_sessions = quietTable(
  "oidc_sessions",
  {
    /** The key of the sign-in: the row ends with it. */
    key_id: text()
      .primaryKey()
      .references(() => api_keys.id, { onDelete: "cascade" }),
    /** The provider's id in the setting. */
    provider: text().notNull(),
    /** The provider's tokens, as JSON. */
    sealed_tokens: text().notNull(),
    has_refresh_token: integer({ mode: "boolean" }).notNull(),
    /** When the provider last confirmed the person, or was asked to. */
    checked_at: integer().notNull(),
  },
  (table) => [index("oidc_sessions_checked").on(table.checked_at)],
);
