// The ledger of model calls: what each has used and cost, for chats and for callers of the gateway. A row is written before the answer is
// complete and never changed. It refers to nothing: what someone has spent stays spent when the chat, the workspace or the model is deleted.
import { index, integer, text } from "drizzle-orm/sqlite-core";
import { quietTable } from "./touching.ts";

/** What a model was asked for: the kinds of `chat_runs`, and calls through the gateway. */
export type SpendKind = "chat_turn" | "title_generation" | "quickgen" | "compaction" | "gateway";

/**
 * How a call of the gateway ended. ok: with a whole answer. failed: by an error of the provider. aborted: the caller left. lost: the server
 * ended in the middle, so its cost is what was reserved for it.
 */
export type CallOutcome = "ok" | "failed" | "aborted" | "lost";

export const model_spend = quietTable(
  "model_spend",
  {
    key: integer().primaryKey(),
    /** The owner of the chat or the workspace, or the person whose token called. */
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
    /** The workspace whose token called; empty for chats and for tokens of people. */
    workspace_id: text().notNull().default(""),
    /** The API key that called; empty for chats and for workspaces. */
    key_id: text().notNull().default(""),
    provider_id: text().notNull().default(""),
    /** The model that the caller asked for, and the one that was used; empty for chats. */
    asked_model: text().notNull().default(""),
    model: text().notNull().default(""),
    outcome: text().$type<CallOutcome>().notNull().default("ok"),
    /** Whether the provider has not told the usage, so that it was estimated. */
    is_estimated: integer({ mode: "boolean" }).notNull().default(false),
    /** Milliseconds from the call to the first byte of its answer, and to its end; null for chats, and where there was none. */
    first_byte_ms: integer(),
    duration_ms: integer(),
    /** The provider's own id of the request. */
    provider_request_id: text().notNull().default(""),
    /** Whose organization and which template it was for; empty for a person's token, and where there was no workspace. */
    organization_id: text().notNull().default(""),
    template_id: text().notNull().default(""),
    /** The recording of its prompt and its answer, while that is kept; empty: it was not recorded. */
    recording_id: text().notNull().default(""),
  },
  (table) => [
    index("model_spend_user").on(table.user_id, table.created_at, table.cost_micros),
    index("model_spend_root").on(table.root_chat_id),
    index("model_spend_created").on(table.created_at),
  ],
);

/** Prompts and answers of the gateway's calls, where an administrator has turned that on. Deleted with their retention and with their person. */
export const model_recordings = quietTable(
  "model_recordings",
  {
    id: text().primaryKey(),
    user_id: text().notNull(),
    /** Both texts, compressed and sealed for this row. */
    sealed_texts: text().notNull(),
    /** Bytes of the whole texts; what is kept of each is bounded. */
    prompt_bytes: integer().notNull(),
    answer_bytes: integer().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [index("model_recordings_created").on(table.created_at), index("model_recordings_user").on(table.user_id)],
);

/**
 * Model calls that are under way, each with what it may cost: those of the gateway, and those of chats while a budget applies. The row is deleted
 * in the batch that writes the ledger's. The server that makes the call renews `alive_until`; a call that is not renewed was lost.
 */
export const model_reservations = quietTable(
  "model_reservations",
  {
    id: text().primaryKey(),
    user_id: text().notNull(),
    workspace_id: text().notNull(),
    key_id: text().notNull(),
    provider_id: text().notNull(),
    model_config_id: text().notNull(),
    asked_model: text().notNull(),
    model: text().notNull(),
    reserved_micros: integer().notNull(),
    reserved_tokens: integer().notNull().default(0),
    created_at: integer().notNull(),
    alive_until: integer().notNull().default(0),
    kind: text().$type<SpendKind>().notNull().default("gateway"),
    chat_id: text().notNull().default(""),
    root_chat_id: text().notNull().default(""),
    organization_id: text().notNull().default(""),
    template_id: text().notNull().default(""),
  },
  (table) => [index("model_reservations_user").on(table.user_id)],
);
