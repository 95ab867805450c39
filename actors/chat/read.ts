// Reading a chat whole: its row and its queue.
import { findChat } from "#db/chats.ts";
import { listQueued } from "#db/messages.ts";
import type { Store } from "#db/store.ts";
import type { ChatState } from "./writes.ts";

/** Undefined when there is no such chat. */
export const readChat = async (store: Store, id: string): Promise<ChatState | undefined> => {
  const row = await store.get(findChat({ id }));
  if (!row) return undefined;
  const queue = await store.all(listQueued({ chat: row.key }));
  return { ...row, queue };
};
