// What was asked of the consumers of lifecycle hooks and what they decided. Written before a decision counts, never changed, and let go in
// its time (actors/hooks/ledger.ts). Refers to nothing: a row outlives its chat, but not what was said in it.
import { index, integer, text } from "drizzle-orm/sqlite-core";
import { quietTable } from "./touching.ts";

export const hook_dispatches = quietTable(
  "hook_dispatches",
  {
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    event: text().notNull(),
    chat_id: text().notNull(),
    owner_id: text().notNull(),
    /** Of the events of tools. */
    tool_name: text(),
    mode: text().$type<"observe" | "enforce">().notNull(),
    source: text().$type<"deployment" | "workspace">().notNull(),
    /** A decision, or why there was none (src/hooks/protocol.ts). */
    result: text().notNull(),
    created_at: integer().notNull(),
    duration_ms: integer().notNull(),
    /** What was sent and answered; null unless contents are asked for. */
    request: text(),
    response: text(),
  },
  (table) => [
    index("hook_dispatches_chat").on(table.chat_id, table.key),
    index("hook_dispatches_created").on(table.created_at),
  ],
);
