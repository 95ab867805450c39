// Counts how often the server crashed during a turn, which may be the cause (rule CH-52). Pure.
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { ChatState } from "./chat-state.ts";

/** After this many crashes of the server in a row, a turn is not continued, because it may have caused them. */
export const MAX_CRASHES = 2;

export const CRASHED: ChatError = {
  kind: "generic",
  message:
    "The server stopped twice while it worked on this message, so it did not try a third time. Send the message again to retry, with smaller attachments if it has large ones.",
  retryable: true,
};

/** Returns the count with one more crash if an attempt of the turn has begun since the last one; undefined otherwise. */
export const countCrash = ({
  status,
  history_version,
  generation_attempt: attempt,
  crashes,
}: Pick<ChatState, "status" | "history_version" | "generation_attempt" | "crashes">):
  | NonNullable<ChatState["crashes"]>
  | undefined => {
  const counted = crashes?.history_version === history_version ? crashes : { attempt: 0, count: 0 };
  if (status !== "running" || attempt <= counted.attempt) return undefined;
  return { history_version, attempt, count: counted.count + 1 };
};
