// Counts how often the server crashed during a turn, because the turn may be the cause (rule CH-52). Pure.
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { ChatState } from "./chat-state.ts";

/** After this many crashes in a row, the server does not continue the turn. */
export const MAX_CRASHES = 2;

export const CRASHED: ChatError = {
  kind: "generic",
  message:
    "The server stopped twice while it worked on this message, so it did not try a third time. Send the message again to retry, with smaller attachments if it has large ones.",
  retryable: true,
};

/** Returns the increased count if the turn has begun an attempt since the last lastCrash crash; undefined otherwise. */
export const countCrash = ({
  status,
  history_version,
  generation_attempt: attempt,
  crashes,
}: Pick<ChatState, "status" | "history_version" | "generation_attempt" | "crashes">):
  | NonNullable<ChatState["crashes"]>
  | undefined => {
  const lastCrash = crashes?.history_version === history_version ? crashes : { attempt: 0, count: 0 };
  if (status !== "running" || attempt <= lastCrash.attempt) return undefined;
  return { history_version, attempt, count: lastCrash.count + 1 };
};
