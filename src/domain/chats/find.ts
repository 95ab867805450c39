// Finds the chat of a request and checks access: hidden is 404, visible but another user's is 403 (facts/chats 4.1).
import { conflict, forbidden, notFound } from "#base/errors.ts";
import { type ChatAccessRow, findAgentSession, findChatAccessRow } from "#db/chats/chats.ts";
import { findSnapshot } from "#db/chats/context.ts";
import { listChatFiles } from "#db/chats/files.ts";
import { isSharedWith } from "#db/chats/shares.ts";
import { type ChatView, findChatView, listChildViews } from "#db/chats/views.ts";
import type { Store } from "#db/engine/store.ts";
import { findModelName } from "#db/models/models.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canDriveChat, canUpdateChat, canWorkIn, listReaderIds } from "../access.ts";
import type { DomainContext } from "../context.ts";
import type { Access } from "../live-access.ts";
import { presentAgentOptions, presentChat, presentContext } from "./present.ts";

/** Allows the owner, site owners, and users whom the chat or its root is shared with. */
export const canSeeChat = async (
  { store }: Pick<DomainContext, "store">,
  caller: UserCaller,
  chat: ChatAccessRow,
): Promise<boolean> =>
  canUpdateChat(caller, chat) || isSharedWith(store, getRootId(chat), listReaderIds(caller, chat.organization_id));

export const getRootId = ({ id, parent_chat_id }: ChatAccessRow): string => parent_chat_id ?? id;

/** Returns a chat the caller can see. Rejects with 404. */
export const findVisibleChat = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<ChatAccessRow> => {
  const chat = await ctx.store.get(findChatAccessRow({ id: id.toLowerCase() }));
  if (!chat || !(await canSeeChat(ctx, caller, chat))) throw notFound();
  return chat;
};

/**
 * Returns the access that a stream of the chat depends on: the stream ends when the caller can no longer see the chat or it is deleted
 * (rule CS-5).
 */
export const makeChatAccess = (ctx: DomainContext, chat: ChatAccessRow): Access => ({
  key: `chat ${chat.id}`,
  topic: getRootId(chat),
  lossReason: "you no longer have access to the chat",
  isStillAllowed: async (caller) => {
    const current = await ctx.store.get(findChatAccessRow({ id: chat.id }));
    return current !== undefined && canSeeChat(ctx, caller, current);
  },
});

/** Returns a chat the caller can change. Rejects with 404, and with 403 for users it is only shared with. */
export const findChangeableChat = async (
  ctx: DomainContext,
  id: string,
  caller: UserCaller,
): Promise<ChatAccessRow> => {
  const chat = await findVisibleChat(ctx, id, caller);
  if (!canUpdateChat(caller, chat)) throw forbidden("This chat is shared with you as read-only.");
  return chat;
};

/** Returns a chat the caller can send to: only its owner, while a member of its organization. Rejects with 404, 403, or 409 if archived. */
export const loadOwnChat = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<ChatAccessRow> => {
  const chat = await findVisibleChat(ctx, id, caller);
  if (!canDriveChat(caller, chat)) throw forbidden("Only the owner of a chat can do this.");
  if (!canWorkIn(caller, chat.organization_id)) throw forbidden("You are not a member of the chat's organization.");
  if (chat.archived) throw conflict("The chat is archived. Unarchive it first.");
  return chat;
};

/** Returns the chat with its children. Rejects with 404 when it no longer exists. */
export const readChat = async ({ store, generations, warnings }: DomainContext, id: string): Promise<Chat> => {
  const view = await store.get(findChatView(id));
  if (!view) throw notFound();
  const children: ChatView[] = view.chat.parent_chat_id === null ? await store.all(listChildViews([id])) : [];
  const files = await store.all(listChatFiles({ chat: view.chat.key }));
  const presented = presentChat(view, children, generations.isWaiting(id), files);
  const snapshot = view.context ? await store.get(findSnapshot({ id: view.context.snapshot })) : undefined;
  const context = view.context ? { context: presentContext(view.context, snapshot?.resources) } : {};
  const agent_options = presentAgentOptions((await store.get(findAgentSession({ id })))?.agent_session ?? null);
  return {
    ...presented,
    ...(agent_options.length === 0 ? {} : { agent_options }),
    warnings: [...(await listModelWarnings(store, view.chat)), ...warnings.list(id)],
    ...context,
  };
};

/** Warns when a different model answers than the one a queued message was sent for (rule MO-34). */
const listModelWarnings = async (
  store: Store,
  { replaced_model_config_id, last_model_config_id }: ChatView["chat"],
): Promise<string[]> => {
  if (replaced_model_config_id === null) return [];
  const findName = async (id: string) => (await store.get(findModelName({ id })))?.display_name ?? id;
  const [wanted, used] = [await findName(replaced_model_config_id), await findName(last_model_config_id)];
  return [`The queued message asked for the model "${wanted}", which is not available. "${used}" answers it.`];
};
