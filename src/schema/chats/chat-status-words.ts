// The statuses of a chat and the words that people read for them. Pages use it, so it imports nothing.

export const CHAT_STATUSES = ["waiting", "running", "interrupting", "requires_action", "error"] as const;
export type ChatStatus = (typeof CHAT_STATUSES)[number];

/** What people read for each, in pages, at the command line and in the documentation of the API. */
export const CHAT_STATUS_WORDS: Readonly<Record<ChatStatus, string>> = {
  waiting: "done",
  running: "working",
  interrupting: "stopping",
  requires_action: "waiting for you",
  error: "failed",
};
