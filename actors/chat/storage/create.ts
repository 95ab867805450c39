// The initial state of a chat, already running, and its first messages (facts/chats 1.3, create). Pure.

import { toShard } from "#base/shards.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { Message } from "../machine/decision.ts";
import type { CreateChat } from "../messages.ts";

/** Snapshot and history versions begin at 1. The queue version begins at 0, which means never used. */
export const toCreation = (
  { chat, messages }: CreateChat,
  { key, first_id, now }: { key: number; first_id: number; now: number },
): { state: ChatState; inserted: Message[] } => {
  const inserted = messages.map((message, index) => ({
    ...message,
    id: first_id + index,
    created_at: now,
    revision: 1,
  }));
  const state: ChatState = {
    ...chat,
    subagent_type: chat.subagent_type ?? null,
    permissions: chat.permissions ?? null,
    coding_agent: chat.coding_agent ?? null,
    agent_session: null,
    replaced_model_config_id: null,
    part: toShard(chat.owner_id),
    key,
    summary: null,
    last_turn_summary: "",
    pin_order: 0,
    read_cursor: 0,
    created_at: now,
    updated_at: now,
    status: "running",
    archived: false,
    queue: [],
    pending_calls: [],
    compaction: null,
    last_error: null,
    retry_state: null,
    requires_action_deadline: null,
    budget_pause: null,
    snapshot_version: 1,
    history_version: 1,
    queue_version: 0,
    retry_version: 0,
    generation_attempt: 0,
    last_assistant_id: 0,
    asked_by: null,
    crashes: null,
  };
  return { state, inserted };
};
