// Stops and archives a chat, for example when its task has ended.
import { AppError } from "#base/errors.ts";
import { findChat } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import type { Directory } from "../runtime/directory.ts";
import type { ChatActor } from "./actor.ts";

type Deps = { readonly store: Pick<Store, "get">; readonly chats: Directory<ChatActor> };

/** Stops and archives the chat. Rejects with 409 while its turn is still stopping. Does nothing for an archived or deleted chat. */
export const endChat = async ({ store, chats }: Deps, chat_id: string): Promise<void> => {
  const chat = await store.get(findChat({ id: chat_id }));
  if (!chat || chat.archived) return;
  await interruptChat(chats, chat_id);
  await chats.ask(chat_id, "change", { archived: true, patch: {}, pin: null });
};

/** Stops the chat's turn. Does nothing when no turn is running. */
export const interruptChat = async (chats: Directory<ChatActor>, chat_id: string): Promise<void> => {
  await chats.ask(chat_id, "interrupt", {}).catch((error) => {
    if (!(error instanceof AppError) || error.kind !== "conflict") throw error;
  });
};
