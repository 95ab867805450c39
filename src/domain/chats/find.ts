// Finding the chat a request is about, and who may do what to it: hidden is 404, visible but another's is 403 (facts/chats 4.1).
import { conflict, forbidden, notFound } from "#base/errors.ts";
import { type ChatPlace, findAgentSession, findChatPlace } from "#db/chats/chats.ts";
import { findSnapshot } from "#db/chats/context.ts";
import { listChatFiles } from "#db/chats/files.ts";
import { isSharedWith } from "#db/chats/shares.ts";
import { type ChatView, findChatView, listChildViews } from "#db/chats/views.ts";
import type { Store } from "#db/engine/store.ts";
import { findModelName } from "#db/models/models.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { mayDriveChat, mayUpdateChat, mayWorkIn, readsChatsAs } from "../access.ts";
import type { DomainContext } from "../context.ts";
import type { Access } from "../live-access.ts";
import { presentAgentOptions, presentChat, presentContext } from "./present.ts";

/** The owner, the site owner, and anyone who the chat or its root is shared with. */
export const maySeeChat = async (
  { store }: Pick<DomainContext, "store">,
  caller: UserCaller,
  place: ChatPlace,
): Promise<boolean> =>
  mayUpdateChat(caller, place) || isSharedWith(store, getRoot(place), readsChatsAs(caller, place.organization_id));

const getRoot = ({ id, parent_chat_id }: ChatPlace): string => parent_chat_id ?? id;

/** A chat the caller may see. 404. */
export const visibleChat = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<ChatPlace> => {
  const place = await ctx.store.get(findChatPlace({ id: id.toLowerCase() }));
  if (!place || !(await maySeeChat(ctx, caller, place))) throw notFound();
  return place;
};

/** What a stream of the chat depends on: it ends when the caller may no longer see the chat, or there is none (rule CS-5). */
export const chatAccess = (ctx: DomainContext, place: ChatPlace): Access => ({
  key: `chat ${place.id}`,
  topic: getRoot(place),
  lost: "you no longer have access to the chat",
  holds: async (caller) => {
    const now = await ctx.store.get(findChatPlace({ id: place.id }));
    return now !== undefined && maySeeChat(ctx, caller, now);
  },
});

/** A chat the caller may change. 404, and 403 for who only reads along. */
export const changeableChat = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<ChatPlace> => {
  const place = await visibleChat(ctx, id, caller);
  if (!mayUpdateChat(caller, place)) throw forbidden("This chat is shared with you as read-only.");
  return place;
};

/** A chat the caller may speak in: its owner's alone, while a member of its organization. 404, 403, archived 409. */
export const ownChat = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<ChatPlace> => {
  const place = await visibleChat(ctx, id, caller);
  if (!mayDriveChat(caller, place)) throw forbidden("Only the owner of a chat can do this.");
  if (!mayWorkIn(caller, place.organization_id)) throw forbidden("You are not a member of the chat's organization.");
  if (place.archived) throw conflict("The chat is archived. Unarchive it first.");
  return place;
};

/** The whole chat with its children, as one is read. 404 when it no longer exists. */
export const readChat = async ({ store, generations, warnings }: DomainContext, id: string): Promise<Chat> => {
  const view = await store.get(findChatView(id));
  if (!view) throw notFound();
  const children: ChatView[] = view.chat.parent_chat_id === null ? await store.all(listChildViews([id])) : [];
  const files = await store.all(listChatFiles({ chat: view.chat.key }));
  const shown = presentChat(view, children, generations.isWaiting(id), files);
  const snapshot = view.context ? await store.get(findSnapshot({ id: view.context.snapshot })) : undefined;
  const context = view.context ? { context: presentContext(view.context, snapshot?.resources) } : {};
  const agent_options = presentAgentOptions((await store.get(findAgentSession({ id })))?.agent_session ?? null);
  return {
    ...shown,
    ...(agent_options.length === 0 ? {} : { agent_options }),
    warnings: [...(await modelWarnings(store, view.chat)), ...warnings.of(id)],
    ...context,
  };
};

/** That another model answers than the one a queued message was sent for (rule MO-34). */
const modelWarnings = async (
  store: Store,
  { replaced_model_config_id, last_model_config_id }: ChatView["chat"],
): Promise<string[]> => {
  if (replaced_model_config_id === null) return [];
  const nameOf = async (id: string) => (await store.get(findModelName({ id })))?.display_name ?? id;
  const [wanted, used] = [await nameOf(replaced_model_config_id), await nameOf(last_model_config_id)];
  return [`The queued message asked for the model "${wanted}", which is not available. "${used}" answers it.`];
};
