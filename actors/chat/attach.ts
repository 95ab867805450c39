// Attaches the files that a message names to its chat, in the same commit (facts/chats 3.4).
import { linkChatFiles } from "#db/chats/files.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";

/** `chat` is the key. `stale` rejects the batch when another chat has taken one of the files. */
export const attachWrites = (chat: number, content: readonly MessagePart[], now: number): Statement[] => {
  const ids = content.flatMap(({ type, file_id }) => (type === "file" && file_id ? [file_id] : []));
  return linkChatFiles(chat, [...new Set(ids)], now);
};
