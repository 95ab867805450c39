// Finding the chat a request is about, and who may do what to it: hidden is 404, visible but another's is 403 (facts/chats 4.1).
import { AppError, forbidden, notFound } from "#base/errors.ts";
import { listChatFiles } from "#db/chat-files.ts";
import { type ChatView, findChatView, listChildViews } from "#db/chat-views.ts";
import { type ChatPlace, findChatPlace } from "#db/chats.ts";
import type { Chat } from "#schema/chat.ts";
import { mayDriveChat, maySeeChat, mayUpdateChat } from "../access.ts";
import type { UserCaller } from "../caller.ts";
import type { ApiContext } from "../context.ts";
import { showChat } from "./show.ts";

/** A chat the caller may see. 404. */
export const visibleChat = async ({ store }: ApiContext, id: string, caller: UserCaller): Promise<ChatPlace> => {
  const place = await store.get(findChatPlace({ id: id.toLowerCase() }));
  if (!place || !maySeeChat(caller, place)) throw notFound();
  return place;
};

/** A chat the caller may change. 404. */
export const changeableChat = async (ctx: ApiContext, id: string, caller: UserCaller): Promise<ChatPlace> => {
  const place = await visibleChat(ctx, id, caller);
  if (!mayUpdateChat(caller, place)) throw notFound();
  return place;
};

/** A chat the caller may speak in: its owner's alone. 404, 403, archived 400. */
export const ownChat = async (ctx: ApiContext, id: string, caller: UserCaller): Promise<ChatPlace> => {
  const place = await visibleChat(ctx, id, caller);
  if (!mayDriveChat(caller, place)) throw forbidden("Only the owner of a chat can do this.");
  if (place.archived) throw new AppError("invalid", "The chat is archived.");
  return place;
};

/** The whole chat with its children, as one is read. 404 when it is gone. */
export const readChat = async ({ store, generations }: ApiContext, id: string): Promise<Chat> => {
  const view = await store.get(findChatView(id));
  if (!view) throw notFound();
  const children: ChatView[] = view.chat.parent_chat_id === null ? await store.all(listChildViews([id])) : [];
  const files = await store.all(listChatFiles({ chat: view.chat.key }));
  return showChat(view, children, generations.isWaiting(id), files);
};
