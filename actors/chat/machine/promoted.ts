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

/** The model for a message that has waited: the one of this id, else the default; undefined when none exists to use. */
export type FindModel = (id: string) => string | undefined;

/**
 * What the chat takes over from the messages that have left its queue for its history; the last one counts. Where its model cannot be used
 * any more the default takes its place, and the chat remembers which was wanted until the next message (rule MO-34).
 */
export const promotedPatch = (
  { replaced_model_config_id }: Pick<ChatState, "replaced_model_config_id">,
  { inserted, promoted }: Pick<Change<ChatState>, "inserted" | "promoted">,
  find: FindModel,
): ChatPatch => {
  if (!inserted.some(({ role }) => role === "user")) return {};
  const taken: ChatPatch = Object.assign({}, ...promoted.map(toChoice));
  const wanted = taken.last_model_config_id;
  const found = wanted === undefined ? undefined : find(wanted);
  if (wanted !== undefined && found !== undefined && found !== wanted) {
    return { ...taken, last_model_config_id: found, replaced_model_config_id: wanted };
  }
  return { ...taken, ...(replaced_model_config_id === null ? {} : { replaced_model_config_id: null }) };
};

const toChoice = ({ model_config_id, reasoning_effort }: Queued): ChatPatch => ({
  ...(model_config_id === null ? {} : { last_model_config_id: model_config_id }),
  ...(reasoning_effort === "" ? {} : { last_reasoning_effort: reasoning_effort }),
});
