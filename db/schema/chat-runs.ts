// Recorded model calls of chats whose owners enabled recording (facts/chats 4.18): a run is a turn or side task of a chat, a step is one
// model call. Written by the recorder in actors/chat/background/recorder.ts, outside of the chat's mailbox; nothing depends on them.
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, text } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { chats } from "./chats.ts";

export const chat_runs = uncachedTable(
  "chat_runs",
  {
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    chat: integer()
      .notNull()
      .references(() => chats.key),
    kind: text().$type<"chat_turn" | "title_generation" | "quickgen" | "compaction">().notNull(),
    status: text().$type<"in_progress" | "completed" | "error" | "interrupted">().notNull(),
    provider: text().notNull(),
    model: text().notNull(),
    summary: text().notNull().default(""),
    /** The user's newest message, and the newest of all, when it began. */
    trigger_message_id: integer(),
    history_tip_message_id: integer(),
    started_at: integer().notNull(),
    updated_at: integer().notNull(),
    finished_at: integer(),
  },
  (table) => [
    index("chat_runs_chat").on(table.chat, table.key),
    index("chat_runs_started").on(table.started_at),
    // Runs that a crash interrupted.
    index("chat_runs_open").on(table.key).where(sql`${table.status} = 'in_progress'`),
  ],
);

export const chat_run_steps = uncachedTable(
  "chat_run_steps",
  {
    run: integer()
      .notNull()
      .references(() => chat_runs.key, { onDelete: "cascade" }),
    number: integer().notNull(),
    operation: text().$type<"stream" | "generate">().notNull(),
    status: text().$type<"completed" | "error" | "interrupted">().notNull(),
    /** The model's input and output as JSON, truncated to a maximum size. */
    request: text({ mode: "json" }).$type<unknown>().notNull(),
    response: text({ mode: "json" }).$type<unknown>(),
    usage: text({ mode: "json" }).$type<Record<string, number>>(),
    error: text({ mode: "json" }).$type<unknown>(),
    started_at: integer().notNull(),
    finished_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.run, table.number] })],
);
