// Files that people uploaded for chats. The bytes are in the blob store under `hash`.
import { sql } from "drizzle-orm";
import { index, integer, text } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { chats } from "./chats.ts";
import { organizationId, userId } from "./columns.ts";

export const chat_files = uncachedTable(
  "chat_files",
  {
    id: text().primaryKey(),
    organization_id: organizationId(),
    owner_id: userId(),
    /** The chat that it belongs to since a message referenced it. While null, the file is deleted after some time. */
    chat: integer().references(() => chats.key),
    /** SHA-256 of the bytes, hex. */
    hash: text().notNull(),
    name: text().notNull(),
    media_type: text().notNull(),
    size: integer().notNull(),
    created_at: integer().notNull(),
    linked_at: integer(),
  },
  (table) => [
    index("chat_files_chat").on(table.chat, table.linked_at).where(sql`${table.chat} is not null`),
    index("chat_files_orphans").on(table.created_at).where(sql`${table.chat} is null`),
  ],
);
