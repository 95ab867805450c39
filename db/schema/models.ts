// Language model providers and their models. Written only by actors/models/model-settings.ts. Deleted rows are kept, without API keys,
// because messages name the model they were created with.
import { sql } from "drizzle-orm";
import { integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { CallConfig } from "#schema/chats/model-config.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";

export const model_providers = sqliteTable(
  "model_providers",
  {
    id: text().primaryKey(),
    provider: text().$type<ProviderKind>().notNull(),
    display_name: text().notNull(),
    /** Empty for the provider's default URL. */
    base_url: text().notNull(),
    /** Encrypted (src/base/encryption.ts) for the context `model_provider:<id>`; empty without a key. */
    sealed_api_key: text().notNull(),
    enabled: integer({ mode: "boolean" }).notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    deleted: integer({ mode: "boolean" }).notNull().default(false),
  },
  (table) => [
    uniqueIndex("model_providers_name")
      .on(table.provider, sql`lower(${table.display_name})`)
      .where(sql`${table.deleted} = 0`),
  ],
);

export const model_configs = sqliteTable(
  "model_configs",
  {
    id: text().primaryKey(),
    provider_id: text()
      .notNull()
      .references(() => model_providers.id),
    /** The provider's name for the model. */
    model: text().notNull(),
    display_name: text().notNull(),
    enabled: integer({ mode: "boolean" }).notNull(),
    is_default: integer({ mode: "boolean" }).notNull(),
    /** Tokens. */
    context_limit: integer().notNull(),
    /** Percent of the context at which a history is compacted; null: depends on the size of the context. */
    compression_threshold: integer(),
    model_config: text({ mode: "json" }).$type<CallConfig>().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    deleted: integer({ mode: "boolean" }).notNull().default(false),
  },
  (table) => [
    uniqueIndex("model_configs_model").on(table.provider_id, table.model).where(sql`${table.deleted} = 0`),
    uniqueIndex("model_configs_default")
      .on(table.is_default)
      .where(sql`${table.is_default} = 1 and ${table.deleted} = 0`),
  ],
);
