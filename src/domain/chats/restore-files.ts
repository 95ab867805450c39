// Restores the workspace's files before a message is edited (rules UN-6 to UN-9); rejected while a turn is running.
import { readChat, readEdited } from "#actors/chat/storage/read.ts";
import { toPromptScope } from "#actors/chat/turn/offer.ts";
import { conflict, notFound } from "#base/errors.ts";
import { findWrittenAfter } from "#db/chats/messages.ts";
import { CHECKPOINT_DAYS, MAX_CHECKPOINTS_PER_CHAT } from "#schema/agents/checkpoint.ts";
import type { DomainContext } from "../context.ts";

const DAY_MS = 86_400_000;
// Workspaces may delete only checkpoints whose restore is rejected here (rule UN-9).
const NO_LONGER_KEPT = `Files are kept for the newest ${MAX_CHECKPOINTS_PER_CHAT} messages of a chat, and for ${CHECKPOINT_DAYS} days.`;

/**
 * Returns warnings about files that were not restored. Rejects with 404 and 400 like the edit itself, and with 409 while a turn is running,
 * without a checkpoint, or when no file was restored.
 */
export const restoreFiles = async (
  { store, generations, clock }: DomainContext,
  id: string,
  message_id: number,
): Promise<string[]> => {
  const chat = await readChat(store, id);
  if (!chat) throw notFound();
  const { target } = await readEdited(store, chat.key, message_id);
  if (chat.status === "running" || chat.status === "interrupting") {
    throw conflict("A turn is working on the files. Interrupt it first.");
  }
  const newerMessage = await store.get(
    findWrittenAfter({ chat: chat.key, after: message_id, skip: MAX_CHECKPOINTS_PER_CHAT - 1 }),
  );
  if (newerMessage || clock.now() - target.created_at > CHECKPOINT_DAYS * DAY_MS) throw conflict(NO_LONGER_KEPT);
  const { left_out } = await generations.restoreCheckpoint({ ...toPromptScope(chat), chat_id: id }, message_id);
  return left_out.map((text) => `Not restored: ${text}.`);
};
