// Ends what a chat does and puts it into the archive: for what a chat was made for, such as a task.
import { AppError } from "#base/errors.ts";
import { findChat } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import type { Directory } from "../runtime/directory.ts";
import type { ChatActor } from "./actor.ts";

type Deps = { readonly store: Pick<Store, "get">; readonly chats: Directory<ChatActor> };

/** Rejects with 409 while the chat still ends: it is archived at the next try. Nothing happens to one that is archived or deleted. */
export const endChat = async ({ store, chats }: Deps, chat_id: string): Promise<void> => {
  const chat = await store.get(findChat({ id: chat_id }));
  if (!chat || chat.archived) return;
  await interruptChat(chats, chat_id);
  await chats.ask(chat_id, "change", { archived: true, patch: {}, pin: null });
};

/** Stops the chat's turn. What does not run cannot be interrupted, which is no error here. */
export const interruptChat = async (chats: Directory<ChatActor>, chat_id: string): Promise<void> => {
  await chats.ask(chat_id, "interrupt", {}).catch((error) => {
    if (!(error instanceof AppError) || error.kind !== "conflict") throw error;
  });
};
