// What a chat is doing (specification "Chat status").

import { named } from "../named.ts";
import { oneOf } from "../one-of.ts";

export const CHAT_STATUSES = ["waiting", "running", "interrupting", "requires_action", "error"] as const;
export type ChatStatus = (typeof CHAT_STATUSES)[number];

export const ChatStatus = named(
  "ChatStatus",
  oneOf(
    CHAT_STATUSES,
    "waiting: idle, which pages call done. running: a turn is owed or going on. interrupting: it is being stopped. requires_action: results of the client's tools are awaited. error: the last turn failed.",
  ),
);

/** What callers are shown: a status that an older version has left is an error until it is reconciled. */
export const shownStatus = (status: string): ChatStatus => CHAT_STATUSES.find((one) => one === status) ?? "error";
