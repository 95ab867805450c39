// Stores and finds files of chats (rules FL-1 to FL-6). The type is detected from the content.
import { AppError, forbidden, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Blob } from "#db/blobs.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import { type ChatFileRow, findChatFile, findChatIdByKey, insertChatFile } from "#db/chats/files.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canCreateChat, isOwner } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { parseFileName } from "./file-name.ts";
import { checkType, parseDeclaredType } from "./file-type.ts";
import { canSeeChat } from "./find.ts";

type NewFile = {
  readonly organization_id: string;
  /** The content, on disk. Nothing refers to the content of a rejected file, so it is deleted later. */
  readonly blob: Blob;
  /** From the headers of the upload. */
  readonly content_type: string | null;
  readonly disposition: string | null;
};

/** Returns the file's ID. Reports problems in the order of facts/chats 4.14. */
export const storeChatFile = async (
  { store, blobs, clock }: DomainContext,
  caller: UserCaller,
  { organization_id, blob: { hash, size }, content_type, disposition }: NewFile,
): Promise<string> => {
  if (!canCreateChat(caller, organization_id)) throw forbidden("You are not a member of this organization.");
  const declared = parseDeclaredType(content_type);
  const name = parseFileName(disposition);
  if (size === 0) throw new AppError("invalid", "The request body is empty.");
  const media_type = checkType(await Bun.file(await blobs.getPath(hash)).bytes(), name, declared);
  const id = uuid();
  const row = { id, organization_id, owner_id: caller.user_id, hash, name, media_type, size, chat: null };
  await store.commit([insertChatFile({ ...row, created_at: clock.now() })]);
  return id;
};

/** Rejects with 404 for a file the caller may not read. */
export const findFile = async (ctx: DomainContext, caller: UserCaller, id: string): Promise<ChatFileRow> => {
  const file = await ctx.store.get(findChatFile({ id: id.toLowerCase() }));
  if (!file || !(await canRead(ctx, caller, file))) throw notFound();
  return file;
};

/** Allows the uploader, site owners, and everyone who can see the chat it belongs to. */
const canRead = async (ctx: DomainContext, caller: UserCaller, file: ChatFileRow): Promise<boolean> => {
  if (file.owner_id === caller.user_id || isOwner(caller)) return true;
  const chat = file.chat === null ? undefined : await ctx.store.get(findChatIdByKey({ key: file.chat }));
  const access = chat && (await ctx.store.get(findChatAccessRow(chat)));
  return access !== undefined && canSeeChat(ctx, caller, access);
};
