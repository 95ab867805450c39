// Reading what a chat decides on: its row and queue, those of its sub-chats, and what an edit would take away.
import { AppError, notFound } from "#base/errors.ts";
import { findChat, listChildren } from "#db/chats/chats.ts";
import {
  findAnswerAfter,
  findAssistantBefore,
  findClearing,
  findMarker,
  findMessage,
  findSaidAfter,
  listMessageIds,
  listQueued,
} from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";
import type { ChatState } from "../machine/chat-state.ts";

/** Undefined when there is no such chat. */
export const readChat = async (store: Store, id: string): Promise<ChatState | undefined> => {
  const row = await store.get(findChat({ id }));
  if (!row) return undefined;
  const queue = await store.all(listQueued({ chat: row.key }));
  return { ...row, queue };
};

/** 400 for a sub-chat. */
export const checkedRoot = (state: ChatState): ChatState => {
  if (state.parent_chat_id === null) return state;
  throw new AppError("invalid", "Only the root chat can be archived; its sub-chats go with it.");
};

/** The sub-chats that are archived, or those that are not. */
export const readChildren = async (store: Store, root: string, archived: boolean): Promise<ChatState[]> => {
  const rows = await store.all(listChildren({ root }));
  const found: ChatState[] = [];
  for (const row of rows) {
    if (row.archived !== archived) continue;
    const state = await readChat(store, row.id);
    if (state) found.push(state);
  }
  return found;
};

/** The user's message that is edited, and what leaves the history with it. 404, 400. */
export const readEdited = async (store: Store, chat: number, message_id: number) => {
  const target = await store.get(findMessage({ chat, id: message_id }));
  if (!target || target.deleted || target.visibility === "model") throw notFound();
  if (target.role !== "user") throw new AppError("invalid", "Only user messages can be edited.");
  const earlier = await store.get(findAssistantBefore({ chat, before: message_id }));
  const deleted = await store.all(listMessageIds({ chat, from: message_id }));
  return { target, last_assistant_id: earlier?.id ?? 0, deleted_ids: deleted.map(({ id }) => id) };
};

/** Nothing that a model would be given has been answered since the history was last made shorter or cleared. */
export const hasNoAnswer = async (store: Store, chat: number): Promise<boolean> => {
  const after = (await store.get(findMarker({ chat })))?.id ?? 0;
  return (await store.get(findAnswerAfter({ chat, after }))) === undefined;
};

/** A model would be given nothing: nobody has said anything since it was cleared. */
export const isCleared = async (store: Store, chat: number): Promise<boolean> => {
  const after = (await store.get(findClearing({ chat })))?.id ?? 0;
  return (await store.get(findSaidAfter({ chat, after }))) === undefined;
};
