// Secrets of people, provided to their workspaces in environment variables or files. Values are encrypted.
import { sql } from "drizzle-orm";
import { integer, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { users } from "./users.ts";

export const user_secrets = uncachedTable(
  "user_secrets",
  {
    id: text().primaryKey(),
    user_id: text()
      .notNull()
      .references(() => users.id),
    name: text().notNull(),
    description: text().notNull().default(""),
    /** The environment variable; empty for none. */
    env_name: text().notNull().default(""),
    /** The file, absolute or below `~/`; empty for none. */
    file_path: text().notNull().default(""),
    sealed_value: text().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [
    uniqueIndex("user_secrets_name").on(table.user_id, sql`lower(${table.name})`),
    uniqueIndex("user_secrets_env").on(table.user_id, table.env_name).where(sql`${table.env_name} <> ''`),
    uniqueIndex("user_secrets_file").on(table.user_id, table.file_path).where(sql`${table.file_path} <> ''`),
  ],
);
