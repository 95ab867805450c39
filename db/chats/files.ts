// Files of chats: rows for the bytes in the blob store. A new file belongs to no chat. It is attached to the first chat whose message
// references it, until no message of that chat references it any more. A chat keeps its newest fifty files.
import { asc, sql } from "drizzle-orm";
import type { Blobs } from "../blobs.ts";
import { build, eqParam, findBy, insertInto, query, type Statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { chat_files } from "../schema/chat-files.ts";
import { chats } from "../schema/chats.ts";

export type ChatFileRow = typeof chat_files.$inferSelect;

/** Maximum files of a chat (facts/chats 3.4). */
export const MAX_CHAT_FILES = 50;

/** A file by its ID. Parameters: {id}. */
export const findChatFile = findBy(chat_files, chat_files.id);

/** The ID of the chat with this key. Parameters: {key}. */
export const findChatIdByKey = query(build.select({ id: chats.id }).from(chats).where(eqParam(chats.key)));

/** The files of a chat, oldest first. Parameters: {chat}. */
export const listChatFiles = query(
  build
    .select()
    .from(chat_files)
    .where(eqParam(chat_files.chat))
    .orderBy(asc(chat_files.created_at), asc(chat_files.id)),
);

/** The total size of a chat's files in bytes. Parameters: {chat}. */
export const sumChatFileBytes = query(
  build
    .select({ bytes: sql<number>`coalesce(sum(${chat_files.size}), 0)`.mapWith(Number).as("bytes") })
    .from(chat_files)
    .where(eqParam(chat_files.chat)),
);

export const insertChatFile = insertInto(chat_files);

/**
 * Attaches these files to the chat and evicts the least recently used files beyond the limit. Rejected as `stale` when a file was deleted
 * or is attached to another chat.
 */
export const linkChatFiles = (chat: number, ids: readonly string[], now: number): Statement[] =>
  ids.length === 0
    ? []
    : [
        {
          touches: [],
          sql: "update chat_files set chat = ?1, linked_at = ?2 where id = ?3 and (chat is null or chat = ?1)",
          rows: ids.map((id) => [chat, now, id]),
          expect: 1,
        },
        {
          touches: [],
          sql: `delete from chat_files where chat = ?1 and id not in
            (select id from chat_files where chat = ?1 order by linked_at desc, created_at desc, id limit ${MAX_CHAT_FILES})`,
          rows: [[chat]],
        },
      ];

/**
 * Detaches these files from the chat. After that, only their owners can use them, until they are attached again or deleted as files without
 * a chat.
 */
export const unlinkChatFiles = (chat: number, ids: readonly string[]): Statement[] =>
  ids.length === 0
    ? []
    : [
        {
          touches: [],
          sql: "update chat_files set chat = null, linked_at = null where id = ?1 and chat = ?2",
          rows: ids.map((id) => [id, chat]),
        },
      ];

/** Deletes a bounded number of files that no message has referenced since this time. */
export const deleteOrphansBefore = (time: number): Statement => ({
  touches: [],
  sql: "delete from chat_files where id in (select id from chat_files where chat is null and created_at < ?1 limit 1000)",
  rows: [[time]],
});

/** Reads a file in the form for models. Returns undefined when it was deleted. */
export const readAttachment = async (
  { store, blobs }: { readonly store: Store; readonly blobs: Blobs },
  id: string,
): Promise<{ name: string; media_type: string; bytes: Uint8Array; owner_id: string } | undefined> => {
  const row = await store.get(findChatFile({ id }));
  if (!row) return undefined;
  const { name, media_type, hash, owner_id } = row;
  return { name, media_type, bytes: await Bun.file(await blobs.getPath(hash)).bytes(), owner_id };
};
