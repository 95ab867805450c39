// The statuses of a chat and their display names. Imports nothing, because pages use it.

export const CHAT_STATUSES = ["waiting", "running", "interrupting", "requires_action", "error"] as const;
export type ChatStatus = (typeof CHAT_STATUSES)[number];

/** Display names for pages, the command line and the API documentation. */
export const CHAT_STATUS_LABELS: Readonly<Record<ChatStatus, string>> = {
  waiting: "done",
  running: "working",
  interrupting: "stopping",
  requires_action: "waiting for you",
  error: "failed",
};
