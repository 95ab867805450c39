// What a message that has waited brings along when its turn comes: the model and the effort it was sent with. Pure.

import type { ChatPatch } from "../messages.ts";
import type { ChatState } from "./chat-state.ts";
import type { Change, Queued } from "./decision.ts";

/** The model a message is meant for that names none: that of the message it will come after (facts/chats 1.7). */
export const modelAfter = ({
  queue,
  last_model_config_id,
}: Pick<ChatState, "queue" | "last_model_config_id">): string => queue.at(-1)?.model_config_id ?? last_model_config_id;

/** While a message waits, the chat keeps the model and effort of the turn that runs (rule EF-2). */
export const withoutChoice = ({ last_model_config_id: _, last_reasoning_effort: __, ...patch }: ChatPatch): ChatPatch =>
  patch;

/** What the chat takes over from the messages that have left its queue for its history; the last one counts. */
export const promotedPatch = ({ queue }: Pick<ChatState, "queue">, change: Change<ChatState>): ChatPatch => {
  const said = new Set(change.inserted.filter(({ role }) => role === "user").map(({ content }) => content));
  const promoted = queue.filter(({ content }) => said.has(content));
  return Object.assign({}, ...promoted.map(choiceOf)) as ChatPatch;
};

const choiceOf = ({ model_config_id, reasoning_effort }: Queued): ChatPatch => ({
  ...(model_config_id === null ? {} : { last_model_config_id: model_config_id }),
  ...(reasoning_effort === "" ? {} : { last_reasoning_effort: reasoning_effort }),
});
