// The states of a task and the words that people read for them. Pages use it, so it imports words alone.
import { CHAT_STATUS_WORDS } from "../chats/chat-status-words.ts";

export const TASK_STATES = ["working", "idle", "complete", "failed"] as const;

/** What people read for each, in the words of a chat's status. */
export const TASK_STATE_WORDS: Readonly<Record<(typeof TASK_STATES)[number], string>> = {
  working: CHAT_STATUS_WORDS.running,
  idle: CHAT_STATUS_WORDS.requires_action,
  complete: CHAT_STATUS_WORDS.waiting,
  failed: CHAT_STATUS_WORDS.error,
};
