// Chats, their messages and queues. Written only by the chat actor; pin_order is written by any chat of the owner that is pinned, in SQL
// only (rule CH-19).
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, text } from "drizzle-orm/sqlite-core";
import type { BudgetPause } from "#schema/ai/budget.ts";
import type { AgentSessionState } from "#schema/chats/agent-option.ts";
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { ChatPermissions } from "#schema/chats/chat-permissions.ts";
import { uncachedTable } from "./cache-dependencies.ts";
import { organizationId, userId } from "./columns.ts";

/** A tool that the client runs (facts/chats 3.5). */
export type DynamicTool = { name: string; description: string; input_schema: unknown };

/** A call without a result; `permission` and `is_withdrawn` as in actors/chat/machine/decision.ts. */
type PendingCallRow = {
  message_id: number;
  tool_call_id: string;
  tool_name: string;
  args: unknown;
  permission?: "asked" | "granted" | "refused";
  is_withdrawn?: true;
};

export const chats = uncachedTable(
  "chats",
  {
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    organization_id: organizationId(),
    owner_id: userId(),
    /** The owner's shard (src/base/shards.ts); never changes. */
    part: integer().notNull().default(0),
    workspace_id: text(),
    parent_chat_id: text(),
    root_chat_id: text(),
    /** The type of a sub-chat; null in root chats. */
    subagent_type: text().$type<"general" | "explore" | "computer_use">(),
    last_model_config_id: text().notNull(),
    /** The model that the newest message requested, if the default replaced it; otherwise null. */
    replaced_model_config_id: text(),
    last_reasoning_effort: text().notNull().default(""),
    title: text().notNull(),
    /** Null until one was generated. */
    summary: text(),
    last_turn_summary: text().notNull().default(""),
    client_type: text().$type<"api" | "ui">().notNull(),
    plan_mode: text().$type<"plan">(),
    labels: text({ mode: "json" }).$type<Record<string, string>>().notNull().default({}),
    mcp_server_ids: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    dynamic_tools: text({ mode: "json" }).$type<DynamicTool[]>().notNull().default([]),
    /** What its model may do without asking; null: everything. */
    permissions: text({ mode: "json" }).$type<ChatPermissions>(),
    /** The coding agent that runs it; null: Slipway's own loop. */
    coding_agent: text(),
    /** The agent's session, the last message sent to it, and the options that people chose. */
    agent_session: text({ mode: "json" }).$type<AgentSessionState>(),
    pin_order: integer().notNull().default(0),
    /** The newest assistant message that the owner has seen. */
    read_cursor: integer().notNull().default(0),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),

    // The execution state: changed only by transitions (actors/chat/machine/state.ts).
    status: text().notNull(),
    archived: integer({ mode: "boolean" }).notNull().default(false),
    last_error: text({ mode: "json" }).$type<ChatError>(),
    retry_state: text({ mode: "json" }).$type<{
      attempt: number;
      delay_ms: number;
      error: string;
      kind: ChatError["kind"];
      provider: string;
      retrying_at: number;
      status_code: number | null;
    }>(),
    requires_action_deadline: integer(),
    pending_calls: text({ mode: "json" }).$type<PendingCallRow[]>().notNull().default([]),
    /** The owner's compaction request if the turn that is due compacts the history; else null. */
    compaction: text({ mode: "json" }).$type<{ instructions: string; context: string; notice: string }>(),
    /** The budget that must be raised before the turn continues; null: none. */
    budget_pause: text({ mode: "json" }).$type<BudgetPause>(),
    snapshot_version: integer().notNull(),
    history_version: integer().notNull(),
    queue_version: integer().notNull().default(0),
    retry_version: integer().notNull().default(0),
    generation_attempt: integer().notNull().default(0),
    last_assistant_id: integer().notNull().default(0),
    /** The tool with which the last message asks a person a question; null if it asks none, or the question is answered. */
    asked_by: text(),
    /** How often a server has ended without stopping the turn first, for this version of the history, and the last attempt before that. */
    crashes: text({ mode: "json" }).$type<{ history_version: number; attempt: number; count: number }>(),
  },
  (table) => [
    // Lists walk it backwards and stop when the page is full; pinned chats are separate.
    index("chats_owner")
      .on(table.owner_id, table.archived, table.updated_at, table.id)
      .where(sql`${table.parent_chat_id} is null`),
    index("chats_pinned").on(table.owner_id, table.pin_order).where(sql`${table.pin_order} > 0`),
    index("chats_children").on(table.owner_id, table.parent_chat_id).where(sql`${table.parent_chat_id} is not null`),
    index("chats_parent").on(table.parent_chat_id).where(sql`${table.parent_chat_id} is not null`),
    index("chats_workspace").on(table.workspace_id).where(sql`${table.workspace_id} is not null`),
    // Archived chats for retention.
    index("chats_archived").on(table.updated_at).where(sql`${table.archived} = 1 and ${table.parent_chat_id} is null`),
    // Chats to continue when a budget is raised.
    index("chats_budget_pause").on(table.key).where(sql`${table.budget_pause} is not null`),
    // Chats to resume at startup.
    index("chats_busy").on(table.status).where(sql`${table.status} in ('running', 'interrupting')`),
  ],
);

export const messages = uncachedTable(
  "messages",
  {
    id: integer().primaryKey(),
    chat: integer()
      .notNull()
      .references(() => chats.key),
    /** The snapshot version of the transition that last changed it. */
    revision: integer().notNull(),
    deleted: integer({ mode: "boolean" }).notNull().default(false),
    role: text().$type<"user" | "assistant" | "tool" | "system">().notNull(),
    visibility: text().$type<"user" | "model" | "both">().notNull(),
    content: text({ mode: "json" }).$type<MessagePart[]>().notNull(),
    created_by: text(),
    model_config_id: text(),
    usage: text({ mode: "json" }).$type<Record<string, number>>(),
    /** The author's custom prompt as a hook saw it; null if no hook was asked. */
    custom_prompt: text(),
    /** If a number: the row replaces everything before it except this many messages immediately before it. */
    replayed: integer(),
    created_at: integer().notNull(),
  },
  (table) => [
    index("messages_chat").on(table.chat, table.id),
    index("messages_marker").on(table.chat, table.id).where(sql`${table.replayed} is not null`),
  ],
);

export const queued_messages = uncachedTable(
  "queued_messages",
  {
    id: integer().primaryKey(),
    chat: integer()
      .notNull()
      .references(() => chats.key),
    position: integer().notNull(),
    content: text({ mode: "json" }).$type<MessagePart[]>().notNull(),
    created_by: text().notNull(),
    model_config_id: text(),
    reasoning_effort: text().notNull().default(""),
    /** As in `messages`. */
    custom_prompt: text(),
    created_at: integer().notNull(),
  },
  (table) => [index("queued_messages_chat").on(table.chat, table.position)],
);

/** Answers to requests with an `Idempotency-Key`, kept for a day, so that a retry gets the same answer. */
export const chat_requests = uncachedTable(
  "chat_requests",
  {
    chat: integer()
      .notNull()
      .references(() => chats.key),
    key: text().notNull(),
    /** SHA-256 of the request's body; empty if it is not compared. */
    digest: text().notNull().default(""),
    answer: text({ mode: "json" }).$type<unknown>(),
    created_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.chat, table.key] })],
);
