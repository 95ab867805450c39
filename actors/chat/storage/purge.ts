// Deletes a root chat with its sub-chats and all their data. Large data is deleted in slices, each in a commit of limited size. Repeating
// a slice after a crash is harmless (rule RT-3).
import { deleteChatContext } from "#db/chats/context.ts";
import { deleteChat, deleteMessageSlice, findSliceEnd } from "#db/chats/purge.ts";
import { deleteRunSlice, findAnyStep } from "#db/chats/runs.ts";
import { unindexChat } from "#db/chats/search.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { clearHookContents } from "#db/hook-dispatches.ts";
import { deleteRowsOf } from "#db/removal.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { deleteTrials } from "#db/trials/trials.ts";
import type { Outcome } from "../../runtime/actor.ts";
import { announceAccessChange } from "../announce.ts";
import { auditChatDeleted } from "../audit.ts";
import type { ChatDeps } from "../deps.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { LateResult } from "../messages.ts";
import { readChildren } from "./read.ts";

/** Returns `stale` when the chat is not archived, or was archived after `before`. */
export const purgeChat = async (
  { store, chats, clock, topics }: ChatDeps,
  state: ChatState,
  before: number,
): Promise<Outcome<ChatState, LateResult>> => {
  if (!state.archived || state.parent_chat_id !== null || state.updated_at >= before) return { state, reply: "stale" };
  const children = await readChildren(store, state.id, true);
  for (const child of children) {
    await deleteLargeData(store, child);
    const deleted = insertAudit(auditChatDeleted(child, clock.now()));
    await store.commit([...removeChat(child), deleted], { of: child.part });
  }
  await deleteLargeData(store, state);
  const announceDeleted = () => {
    announceAccessChange(topics, state.id);
    for (const { id } of children) {
      announceAccessChange(topics, id);
      void chats()
        .ask(id, "reload", {})
        .catch(() => {});
    }
  };
  return { state, gone: true, writes: removeChat(state), after: announceDeleted, reply: "done" };
};

/** Deletes the data that can be large: messages with their search index entries, and recorded model calls. */
const deleteLargeData = async (store: Store, { key: chat, part }: Pick<ChatState, "key" | "part">): Promise<void> => {
  for (;;) {
    const last = await store.get(findSliceEnd({ chat }));
    if (!last) break;
    await store.commit(deleteMessageSlice(chat, last.id), { of: part });
  }
  while (await store.get(findAnyStep({ chat }))) await store.commit([deleteRunSlice(chat)], { of: part });
};

/** Deletes the remaining data and the chat itself; `stale` when the chat has changed since it was read. */
const removeChat = ({ id, key, snapshot_version }: ChatState): Statement[] => [
  ...unindexChat(key),
  ...deleteChatContext(key),
  // File contents are deleted once no row references them.
  ...deleteRowsOf("chat", key),
  clearHookContents({ chat_id: id }),
  ...deleteTrials(id),
  deleteChat(id, snapshot_version),
];
