// Bringing the workspace's files back before a message is edited (rules UN-6 to UN-8): refused while a turn works on them.

import { readChat, readEdited } from "#actors/chat/read.ts";
import { aboutOf } from "#actors/chat/turn/offer.ts";
import { conflict, notFound } from "#base/errors.ts";
import type { ApiContext } from "../context.ts";

/** Warnings about folders that no checkpoint covers. 404 and 400 as the edit itself; 409 while a turn runs, without a checkpoint, or when something stands in the way. */
export const restoreFiles = async (
  { store, generations }: ApiContext,
  id: string,
  message_id: number,
): Promise<string[]> => {
  const chat = await readChat(store, id);
  if (!chat) throw notFound();
  await readEdited(store, chat.key, message_id);
  if (chat.status === "running" || chat.status === "interrupting") {
    throw conflict("A turn works on the files: interrupt it first.");
  }
  const { left_out } = await generations.restoreFiles({ ...aboutOf(chat), chat_id: id }, message_id);
  return left_out.map((words) => `Not brought back: ${words}.`);
};
