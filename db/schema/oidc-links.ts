// Accounts at OpenID Connect providers that sign a user in, and the sessions of such sign-ins.
import { index, integer, primaryKey, text } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { userId } from "./columns.ts";
import { api_keys } from "./users.ts";

export const oidc_links = uncachedTable(
  "oidc_links",
  {
    issuer: text().notNull(),
    /** The person's ID at the provider, the claim `sub`, which is never reassigned. */
    subject: text().notNull(),
    user_id: userId(),
    created_at: integer().notNull(),
    /** The username at the provider at the last sign-in: only a change there changes the account. Null: not known yet. */
    username: text(),
    name: text(),
  },
  (table) => [primaryKey({ columns: [table.issuer, table.subject] }), index("oidc_links_user").on(table.user_id)],
);

export const oidc_sessions = uncachedTable(
  "oidc_sessions",
  {
    /** The key of the session. The row is deleted with it. */
    key_id: text()
      .primaryKey()
      .references(() => api_keys.id, { onDelete: "cascade" }),
    /** The provider's configured ID. */
    provider: text().notNull(),
    /** The provider's tokens, as JSON. */
    sealed_tokens: text().notNull(),
    has_refresh_token: integer({ mode: "boolean" }).notNull(),
    /** When the provider last confirmed the session, or was last asked to. */
    checked_at: integer().notNull(),
  },
  (table) => [index("oidc_sessions_checked").on(table.checked_at)],
);
