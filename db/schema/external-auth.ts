// Accounts at external-auth providers that users linked, one row per user and provider. The providers themselves are a setting.
import { integer, primaryKey, text } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { userId } from "./columns.ts";

export const external_auth_links = uncachedTable(
  "external_auth_links",
  {
    user_id: userId(),
    provider_id: text().notNull(),
    /** Access token, refresh token and additional data, encrypted (src/base/encryption.ts) for `external_auth:<user_id>:<provider_id>`. */
    sealed_tokens: text().notNull(),
    /** Null if the access token does not expire. */
    expires_at: integer(),
    has_refresh_token: integer({ mode: "boolean" }).notNull(),
    /** Why the link no longer works, for people; empty while it works. */
    failure: text().notNull().default(""),
    /** Incremented by every write, so that decisions based on an older state are rejected. */
    version: integer().notNull().default(0),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.user_id, table.provider_id] })],
);
