// Applications that may request access from people (OAuth 2), their secrets, and the grants they got.
import { sql } from "drizzle-orm";
import { index, integer, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { api_keys, users } from "./users.ts";

export const oauth2_apps = uncachedTable(
  "oauth2_apps",
  {
    /** The `client_id`. */
    id: text().primaryKey(),
    name: text().notNull(),
    icon: text().notNull().default(""),
    redirect_uris: text({ mode: "json" }).$type<string[]>().notNull(),
    /** The maximum scopes that it may request; empty: any. */
    scopes: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    /** client_secret_basic | client_secret_post | none: how it authenticates. */
    auth_method: text().notNull(),
    /** Whether it registered itself instead of being created by an owner. */
    self_registered: integer({ mode: "boolean" }).notNull().default(false),
    created_at: integer().notNull(),
    /** Also updated by each new grant. */
    updated_at: integer().notNull(),
  },
  (table) => [
    uniqueIndex("oauth2_apps_name").on(sql`lower(${table.name})`).where(sql`${table.self_registered} = 0`),
    index("oauth2_apps_registered").on(table.self_registered, table.updated_at),
  ],
);

export const oauth2_app_secrets = uncachedTable(
  "oauth2_app_secrets",
  {
    id: text().primaryKey(),
    app_id: text()
      .notNull()
      .references(() => oauth2_apps.id, { onDelete: "cascade" }),
    /** SHA-256, hex. */
    secret_hash: text().notNull(),
    /** Shown to distinguish secrets. */
    last_characters: text().notNull(),
    created_at: integer().notNull(),
    last_used_at: integer(),
  },
  (table) => [index("oauth2_app_secrets_app").on(table.app_id)],
);

export const oauth2_grants = uncachedTable(
  "oauth2_grants",
  {
    /** The key of the grant. Deleting the key deletes the grant. */
    key_id: text()
      .primaryKey()
      .references(() => api_keys.id, { onDelete: "cascade" }),
    app_id: text()
      .notNull()
      .references(() => oauth2_apps.id, { onDelete: "cascade" }),
    user_id: text()
      .notNull()
      .references(() => users.id),
    scopes: text({ mode: "json" }).$type<string[]>().notNull(),
    redirect_uri: text().notNull(),
    /** SHA-256 of the code, hex. Kept so that a second use is detected. */
    code_hash: text().notNull(),
    /** S256: the expected hash of the verifier, base64url. */
    code_challenge: text().notNull(),
    code_expires_at: integer().notNull(),
    redeemed_at: integer(),
    /** SHA-256 of the part that all refresh tokens of the grant share, and of the currently valid one. */
    family_hash: text(),
    refresh_hash: text(),
    refresh_expires_at: integer(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [
    uniqueIndex("oauth2_grants_code").on(table.code_hash),
    uniqueIndex("oauth2_grants_family").on(table.family_hash).where(sql`${table.family_hash} is not null`),
    index("oauth2_grants_user").on(table.user_id),
    index("oauth2_grants_app").on(table.app_id),
  ],
);
