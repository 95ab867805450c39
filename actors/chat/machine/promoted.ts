// When a queued message is promoted, applies the model and the reasoning effort that it was sent with. Pure.

import type { ChatPatch } from "../messages.ts";
import type { ChatState } from "./chat-state.ts";
import type { Change, QueueItem } from "./decision.ts";

/** Returns the model for a message that names none: the model of the message before it (facts/chats 1.7). */
export const modelAfter = ({
  queue,
  last_model_config_id,
}: Pick<ChatState, "queue" | "last_model_config_id">): string => queue.at(-1)?.model_config_id ?? last_model_config_id;

/** Removes the model and effort of a queued message from a patch, because the chat keeps those of the running turn (rule EF-2). */
export const dropModelChoice = ({
  last_model_config_id: _,
  last_reasoning_effort: __,
  ...patch
}: ChatPatch): ChatPatch => patch;

/** Returns the model with this ID, or else the default; undefined when no model is usable. */
export type FindModel = (id: string) => string | undefined;

/**
 * Returns the changes that promoted messages make to the chat. The last message takes precedence. If its model is no longer usable, the
 * default model replaces it, and the chat stores the requested model until the next message (rule MO-34).
 */
export const toPromotionPatch = (
  { replaced_model_config_id }: Pick<ChatState, "replaced_model_config_id">,
  { inserted, promoted }: Pick<Change<ChatState>, "inserted" | "promoted">,
  findModel: FindModel,
): ChatPatch => {
  if (!inserted.some(({ role }) => role === "user")) return {};
  const choice: ChatPatch = Object.assign({}, ...promoted.map(toModelChoice));
  const wantedModel = choice.last_model_config_id;
  const usableModel = wantedModel === undefined ? undefined : findModel(wantedModel);
  if (wantedModel !== undefined && usableModel !== undefined && usableModel !== wantedModel) {
    return { ...choice, last_model_config_id: usableModel, replaced_model_config_id: wantedModel };
  }
  return { ...choice, ...(replaced_model_config_id === null ? {} : { replaced_model_config_id: null }) };
};

const toModelChoice = ({ model_config_id, reasoning_effort }: QueueItem): ChatPatch => ({
  ...(model_config_id === null ? {} : { last_model_config_id: model_config_id }),
  ...(reasoning_effort === "" ? {} : { last_reasoning_effort: reasoning_effort }),
});
