// Checks the files a message may reference: the caller's own, in the same organization, belonging to this chat or none yet (facts/chats 3.3
// and 3.4). Problems are reported later, with the part that references the file, in the order of parts.
import { AppError } from "#base/errors.ts";
import { findChatFile, MAX_CHAT_FILES } from "#db/chats/files.ts";
import { CHAT_FILE_TYPES } from "#schema/chats/chat-file.ts";
import type { InputPart } from "#schema/chats/chat-part.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";

/** A file that can be attached, or why it cannot. */
export type Attachable = { readonly name: string; readonly media_type: string } | { readonly problem: string };
export type Attachables = ReadonlyMap<string, Attachable>;

/** `key` is the chat's; null for a new one. Rejects with 400 when a message references more files than a chat can have. */
export const loadAttachables = async (
  { store }: DomainContext,
  caller: UserCaller,
  parts: readonly InputPart[],
  chat: { readonly organization_id: string; readonly key: number | null },
): Promise<Attachables> => {
  const fileIds = parts.flatMap(({ type, file_id }) =>
    type.trim().toLowerCase() === "file" && file_id ? [file_id] : [],
  );
  const ids = new Set(fileIds.map((id) => id.toLowerCase()));
  if (ids.size > MAX_CHAT_FILES) {
    throw new AppError("invalid", "Attachment limit exceeded.", {
      detail: `A chat can have at most ${MAX_CHAT_FILES} files.`,
    });
  }
  const found = new Map<string, Attachable>();
  for (const id of ids) {
    const file = await store.get(findChatFile({ id }));
    if (!file || file.owner_id !== caller.user_id) found.set(id, { problem: "names no file you can attach" });
    else if (file.organization_id !== chat.organization_id) {
      found.set(id, { problem: "names a file of another organization" });
    } else if (!CHAT_FILE_TYPES.some((type) => type === file.media_type)) {
      found.set(id, { problem: "names a file of a type that is not allowed" });
    } else if (file.chat !== null && file.chat !== chat.key) {
      found.set(id, { problem: "names a file that belongs to another chat" });
    } else found.set(id, { name: file.name, media_type: file.media_type });
  }
  return found;
};
