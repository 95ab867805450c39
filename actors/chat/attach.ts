// Attaches the files of a message to the chat, in the message's commit, and detaches files that no message names anymore
// (facts/chats 3.4).
import { linkChatFiles, listChatFiles, unlinkChatFiles } from "#db/chats/files.ts";
import { listFileMessages } from "#db/chats/messages.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { ChatState } from "./machine/chat-state.ts";
import type { Change } from "./machine/decision.ts";

/** Returns the writes that attach a message's files. The commit is rejected as stale if one of the files belongs to another chat. */
export const buildAttachWrites = (chat_key: number, content: readonly MessagePart[], now: number): Statement[] => {
  const ids = content.flatMap(({ type, file_id }) => (type === "file" && file_id ? [file_id] : []));
  return linkChatFiles(chat_key, [...new Set(ids)], now);
};

type WithContent = { readonly content: readonly MessagePart[] };

/**
 * Returns the writes that detach the files of messages removed by an edit or from the queue, so that readers of the chat lose access to
 * them (rule FL-8). Files that another message names stay attached.
 */
export const buildDetachWrites = async (
  store: Pick<Store, "all" | "scan">,
  { key: chat, queue }: ChatState,
  { state, inserted, deleted_from }: Change<ChatState>,
): Promise<Statement[]> => {
  const files = await store.all(listChatFiles({ chat }));
  if (files.length === 0) return [];
  const rows = await store.scan(listFileMessages({ chat }));
  const isDeleted = ({ id }: { readonly id: number }): boolean => deleted_from !== null && id >= deleted_from;
  const queuedIds = new Set(state.queue.map(({ id }) => id));
  const removed = findFileIds([...rows.filter(isDeleted), ...queue.filter(({ id }) => !queuedIds.has(id))]);
  const kept = findFileIds([...rows.filter((row) => !isDeleted(row)), ...state.queue, ...inserted]);
  return unlinkChatFiles(
    chat,
    files.flatMap(({ id }) => (removed.has(id) && !kept.has(id) ? [id] : [])),
  );
};

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** Returns all UUIDs in the messages, including tool results. Not all of them are IDs of files. */
export const findFileIds = (messages: readonly WithContent[]): ReadonlySet<string> =>
  new Set(messages.flatMap(({ content }) => JSON.stringify(content).match(UUID) ?? []));
