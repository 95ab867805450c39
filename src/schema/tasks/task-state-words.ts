// The states of a task and their display names. Imports only display names, because pages use it.
import { CHAT_STATUS_LABELS } from "../chats/chat-status-words.ts";

export const TASK_STATES = ["working", "idle", "complete", "failed"] as const;

/** Display names, consistent with those of a chat's status. */
export const TASK_STATE_WORDS: Readonly<Record<(typeof TASK_STATES)[number], string>> = {
  working: CHAT_STATUS_LABELS.running,
  idle: CHAT_STATUS_LABELS.requires_action,
  complete: CHAT_STATUS_LABELS.waiting,
  failed: CHAT_STATUS_LABELS.error,
};
