// Deleting what belongs to a chat, in slices: each is one commit of a bounded size, and doing it again after a crash is harmless.
import { deleteChat, deleteChatLeavings, deleteMessageSlice, findSliceEnd } from "#db/chats/purge.ts";
import { deleteRunSlice, findAnyStep } from "#db/chats/runs.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { forgetHookContents } from "#db/hook-dispatches.ts";
import type { ChatState } from "../machine/chat-state.ts";

/** Messages with their words in the index, and recorded model calls: everything that can be much. */
export const emptyChat = async (store: Store, chat: number): Promise<void> => {
  for (;;) {
    const last = await store.get(findSliceEnd({ chat }));
    if (!last) break;
    await store.commit(deleteMessageSlice(chat, last.id));
  }
  while (await store.get(findAnyStep({ chat }))) await store.commit([deleteRunSlice(chat)]);
};

/** The rest, which is little, and the chat itself; `stale` when somebody has moved the chat since it was read. */
export const removeChat = ({ id, key, snapshot_version }: ChatState): Statement[] => [
  ...deleteChatLeavings(key),
  forgetHookContents({ chat_id: id }),
  deleteChat(id, snapshot_version),
];
