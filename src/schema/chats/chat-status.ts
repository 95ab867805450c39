// The status of a chat (specification "Chat status").

import { oneOf } from "../one-of.ts";
import { named } from "../shape-names.ts";
import { CHAT_STATUS_LABELS, CHAT_STATUSES, type ChatStatus as Status } from "./chat-status-words.ts";

const MEANINGS: Readonly<Record<Status, string>> = {
  waiting: "no turn is running; the chat waits for the next message",
  running: "a turn is running or queued",
  interrupting: "the turn is being interrupted",
  requires_action: "the chat waits for an approval, or for the result of a tool that a client runs",
  error: "the last turn failed",
};

export type ChatStatus = Status;
export const ChatStatus = named(
  "ChatStatus",
  oneOf(
    CHAT_STATUSES,
    CHAT_STATUSES.map((one) => `\`${one}\` (shown as "${CHAT_STATUS_LABELS[one]}"): ${MEANINGS[one]}.`).join(" "),
  ),
);

/** Returns the status that callers see. A status that an older version has stored is shown as an error until it is updated. */
export const toChatStatus = (status: string): ChatStatus => CHAT_STATUSES.find((one) => one === status) ?? "error";

export { CHAT_STATUSES };
