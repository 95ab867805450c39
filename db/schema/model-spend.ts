// What model calls of chats have used and cost, one row for each call that has said what it used. Written before its answer is stored,
// never changed. Refers to nothing: what somebody has spent stays spent when the chat or the model is deleted.
import { index, integer, text } from "drizzle-orm/sqlite-core";
import { quietTable } from "./touching.ts";

/** What a model was asked for: the kinds of `chat_runs`. */
export type SpendKind = "chat_turn" | "title_generation" | "quickgen" | "compaction";

export const model_spend = quietTable(
  "model_spend",
  {
    key: integer().primaryKey(),
    /** Whoever owned the chat. */
    user_id: text().notNull(),
    chat_id: text().notNull(),
    /** The chat itself where it is a root chat. */
    root_chat_id: text().notNull(),
    kind: text().$type<SpendKind>().notNull(),
    model_config_id: text().notNull(),
    input_tokens: integer().notNull(),
    output_tokens: integer().notNull(),
    cache_read_tokens: integer().notNull(),
    cache_creation_tokens: integer().notNull(),
    /** By the price in force then; null: the model had none. */
    cost_micros: integer(),
    created_at: integer().notNull(),
  },
  (table) => [
    index("model_spend_user").on(table.user_id, table.created_at, table.cost_micros),
    index("model_spend_root").on(table.root_chat_id),
    index("model_spend_created").on(table.created_at),
  ],
);
