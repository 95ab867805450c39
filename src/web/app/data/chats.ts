// One's own chats, live. The stream has no snapshot and no cursor: who comes back reads the list again.
import { signal } from "@preact/signals";
import type { Chat } from "#schema/chat.ts";
import type { ToolCallRequest, WatchEvent } from "#schema/chat-event.ts";
import { call } from "./api.ts";
import { LiveSocket } from "./live-socket.ts";

/** What a chat waits for, as far as it was told since the page was opened. */
export type Asked = { readonly kind: "permission" | undefined; readonly tool_calls: readonly ToolCallRequest[] };

/** Root chats by id, the newest first; archived ones are not among them. */
export const chats = signal<ReadonlyMap<string, Chat>>(new Map());
export const chatsLoaded = signal(false);
/** By chat. */
export const asked = signal<ReadonlyMap<string, Asked>>(new Map());

const LIMIT = 100;
let _socket: LiveSocket | undefined;

const list = async (): Promise<void> => {
  const found = await call("GET /chats", { query: { limit: LIMIT } }).catch(() => undefined);
  if (!found) return;
  chats.value = new Map(found.map((chat) => [chat.id, chat]));
  chatsLoaded.value = true;
};

const take = (text: string): void => {
  const event = JSON.parse(text) as WatchEvent;
  const { kind, chat } = event;
  const waits = new Map(asked.value);
  if (kind === "action_required") waits.set(chat.id, { kind: event.action_kind, tool_calls: event.tool_calls ?? [] });
  else if (chat.status !== "requires_action") waits.delete(chat.id);
  asked.value = waits;
  // Sub-chats belong to their root's page.
  if (chat.parent_chat_id) return;
  const next = new Map(chats.value);
  if (kind === "deleted" || chat.archived) next.delete(chat.id);
  else next.set(chat.id, { ...chat, children: next.get(chat.id)?.children ?? [] });
  chats.value = new Map([...next].sort(([, a], [, b]) => (a.updated_at < b.updated_at ? 1 : -1)));
};

/** Begins to follow; once for the app. */
export const followChats = (): void => {
  _socket ??= new LiveSocket({ address: () => "/api/v2/chats/watch", message: take, opened: () => void list() });
};
