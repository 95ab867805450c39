// Reads the data for a chat's decisions: its row and queue, the rows and queues of its sub-chats, and the messages that an edit would
// remove.
import { AppError, notFound } from "#base/errors.ts";
import { findChat, listChildren } from "#db/chats/chats.ts";
import {
  findAnswerAfter,
  findAssistantBefore,
  findClearing,
  findMarker,
  findMessage,
  findModelMessageAfter,
  listMessageIds,
  listQueued,
} from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";
import type { ChatState } from "../machine/chat-state.ts";

/** Returns undefined when the chat does not exist. */
export const readChat = async (store: Store, id: string): Promise<ChatState | undefined> => {
  const row = await store.get(findChat({ id }));
  if (!row) return undefined;
  const queue = await store.all(listQueued({ chat: row.key }));
  return { ...row, queue };
};

/** Throws 400 for a sub-chat. */
export const requireRoot = (state: ChatState): ChatState => {
  if (state.parent_chat_id === null) return state;
  throw new AppError("invalid", "Only the root chat can be archived. Its sub-chats are archived with it.");
};

/** Returns the archived sub-chats, or the others. */
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

/** Returns the user's message to edit, and the IDs of the messages that are removed with it. Rejects with 404 or 400. */
export const readEdited = async (store: Store, chat: number, message_id: number) => {
  const target = await store.get(findMessage({ chat, id: message_id }));
  if (!target || target.deleted || target.visibility === "model") throw notFound();
  if (target.role !== "user") throw new AppError("invalid", "Only user messages can be edited.");
  const earlier = await store.get(findAssistantBefore({ chat, before: message_id }));
  const deleted = await store.all(listMessageIds({ chat, from: message_id }));
  return { target, last_assistant_id: earlier?.id ?? 0, deleted_ids: deleted.map(({ id }) => id) };
};

/** Returns whether the model's context contains no answered message since the last compaction or clearing. */
export const hasNoAnswer = async (store: Store, chat: number): Promise<boolean> => {
  const after = (await store.get(findMarker({ chat })))?.id ?? 0;
  return (await store.get(findAnswerAfter({ chat, after }))) === undefined;
};

/** Returns whether the model's context is empty: no message was added since it was cleared. */
export const isCleared = async (store: Store, chat: number): Promise<boolean> => {
  const after = (await store.get(findClearing({ chat })))?.id ?? 0;
  return (await store.get(findModelMessageAfter({ chat, after }))) === undefined;
};
