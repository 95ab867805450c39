// Requests to the consumers of lifecycle hooks and their decisions. Written before a decision takes effect, never changed, and deleted by
// retention (actors/hooks/ledger.ts). References nothing: a row outlives its chat, but not the chat's contents.
import { index, integer, text } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";

export const hook_dispatches = uncachedTable(
  "hook_dispatches",
  {
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    event: text().notNull(),
    chat_id: text().notNull(),
    owner_id: text().notNull(),
    /** Only for tool events. */
    tool_name: text(),
    mode: text().$type<"observe" | "enforce">().notNull(),
    source: text().$type<"deployment" | "workspace">().notNull(),
    /** A decision, or why none exists (src/hooks/protocol.ts). */
    result: text().notNull(),
    created_at: integer().notNull(),
    duration_ms: integer().notNull(),
    /** The request and the answer; null unless recording of contents is enabled. */
    request: text(),
    response: text(),
  },
  (table) => [
    index("hook_dispatches_chat").on(table.chat_id, table.key),
    index("hook_dispatches_created").on(table.created_at),
  ],
);
