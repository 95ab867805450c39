// The accounts at external-auth providers that users have linked, one row a user and provider. The providers themselves are a setting.
import { integer, primaryKey, text } from "drizzle-orm/sqlite-core";
import { userId } from "./columns.ts";
import { quietTable } from "./touching.ts";

export const external_auth_links = quietTable(
  "external_auth_links",
  {
    user_id: userId(),
    provider_id: text().notNull(),
    /** Access token, refresh token and what came along, sealed (src/base/encryption.ts) for `external_auth:<user_id>:<provider_id>`. */
    sealed_tokens: text().notNull(),
    /** Null: the access token does not expire. */
    expires_at: integer(),
    has_refresh_token: integer({ mode: "boolean" }).notNull(),
    /** Why the link does not work any more, in words; empty while it does. */
    failure: text().notNull().default(""),
    /** Raised by every write, so that what was decided on an older state is refused. */
    version: integer().notNull().default(0),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.user_id, table.provider_id] })],
);
