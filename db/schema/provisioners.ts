// Workers of an organization that run as separate processes (`slipway provisioner`), and the keys they sign in with.
import { sql } from "drizzle-orm";
import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { organizationId } from "./columns.ts";

export const provisioner_keys = sqliteTable(
  "provisioner_keys",
  {
    /** UUID. */
    id: text().primaryKey(),
    /** The 10 characters before the hyphen of `<prefix>-<secret>`, used for lookups. */
    prefix: text().notNull().default(""),
    organization_id: organizationId(),
    name: text().notNull(),
    /** SHA-256 of the secret, hex. */
    secret_hash: text().notNull(),
    /** Tags of every worker with this key. */
    tags: text({ mode: "json" }).$type<Record<string, string>>().notNull().default({}),
    created_by: text().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [
    uniqueIndex("provisioner_keys_name").on(table.organization_id, sql`lower(${table.name})`),
    uniqueIndex("provisioner_keys_prefix").on(table.prefix),
  ],
);

export const provisioner_daemons = sqliteTable(
  "provisioner_daemons",
  {
    id: text().primaryKey(),
    organization_id: organizationId(),
    key_id: text().notNull(),
    name: text().notNull(),
    version: text().notNull(),
    provisioners: text({ mode: "json" }).$type<string[]>().notNull(),
    tags: text({ mode: "json" }).$type<Record<string, string>>().notNull(),
    slots: integer().notNull(),
    created_at: integer().notNull(),
    /** When it last connected or disconnected. */
    last_seen_at: integer().notNull(),
  },
  (table) => [
    uniqueIndex("provisioner_daemons_name").on(table.organization_id, sql`lower(${table.name})`),
    index("provisioner_daemons_seen").on(table.organization_id, table.last_seen_at),
  ],
);
