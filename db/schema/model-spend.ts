// The ledger of model calls: usage and cost of each, for chats and callers of the gateway. A row is written before the answer is complete
// and never changed. References nothing: spending remains when the chat, the workspace or the model is deleted.
import { index, integer, text } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";

/** The purpose of a call: the kinds of `chat_runs`, and calls through the gateway. */
export type SpendKind = "chat_turn" | "title_generation" | "quickgen" | "compaction" | "gateway";

/**
 * How a gateway call ended. ok: complete answer. failed: the provider returned an error. aborted: the caller disconnected. lost: the server
 * ended during the call, so the reserved cost is charged.
 */
export type CallOutcome = "ok" | "failed" | "aborted" | "lost";

export const model_spend = uncachedTable(
  "model_spend",
  {
    key: integer().primaryKey(),
    /** The owner of the chat or workspace, or of the token used. */
    user_id: text().notNull(),
    chat_id: text().notNull(),
    /** For a root chat, its own ID. */
    root_chat_id: text().notNull(),
    kind: text().$type<SpendKind>().notNull(),
    model_config_id: text().notNull(),
    input_tokens: integer().notNull(),
    output_tokens: integer().notNull(),
    cache_read_tokens: integer().notNull(),
    cache_creation_tokens: integer().notNull(),
    /** By the price at that time; null if the model had none. */
    cost_micros: integer(),
    created_at: integer().notNull(),
    /** The workspace whose token was used; empty for chats and for people's tokens. */
    workspace_id: text().notNull().default(""),
    /** The API key used; empty for chats and for workspaces. */
    key_id: text().notNull().default(""),
    provider_id: text().notNull().default(""),
    /** The model that the caller requested, and the model that was used; empty for chats. */
    asked_model: text().notNull().default(""),
    model: text().notNull().default(""),
    outcome: text().$type<CallOutcome>().notNull().default("ok"),
    /** Whether the usage was estimated, because the provider did not report it. */
    is_estimated: integer({ mode: "boolean" }).notNull().default(false),
    /** Milliseconds from the call to the first byte of its answer, and to its end; null for chats, and if there was no answer. */
    first_byte_ms: integer(),
    duration_ms: integer(),
    /** The provider's request ID. */
    provider_request_id: text().notNull().default(""),
    /** The organization and the template of the call; empty for a person's token, and without a workspace. */
    organization_id: text().notNull().default(""),
    template_id: text().notNull().default(""),
    /** The recording of its prompt and answer, while kept; empty if it was not recorded. */
    recording_id: text().notNull().default(""),
  },
  (table) => [
    index("model_spend_user").on(table.user_id, table.created_at, table.cost_micros),
    index("model_spend_root").on(table.root_chat_id),
    index("model_spend_created").on(table.created_at),
  ],
);

/** Prompts and answers of gateway calls, if an administrator enabled recording. Deleted by retention and with their user. */
export const model_recordings = uncachedTable(
  "model_recordings",
  {
    id: text().primaryKey(),
    user_id: text().notNull(),
    /** Both texts, compressed and encrypted for this row. */
    sealed_texts: text().notNull(),
    /** Size of the complete texts; only a bounded part of each is stored. */
    prompt_bytes: integer().notNull(),
    answer_bytes: integer().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [index("model_recordings_created").on(table.created_at), index("model_recordings_user").on(table.user_id)],
);

/**
 * Reservations of running model calls: those of the gateway, and those of chats while a budget applies. Deleted in the batch that writes
 * the ledger row. The server that makes the call renews `alive_until`; a call that is not renewed is considered lost.
 */
export const model_reservations = uncachedTable(
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
