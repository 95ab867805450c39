// The user's own chats, live. The stream has no snapshot and no cursor, so the list is reloaded after each reconnect.
import { signal } from "@preact/signals";
import type { Chat } from "#schema/chats/chat.ts";
import type { ToolCallRequest, WatchEvent } from "#schema/chats/chat-event.ts";
import { cameWithPage } from "../../browser/early.ts";
import { call } from "./api.ts";
import { firstPaint } from "./first-paint.ts";
import { ListRequests } from "./list-requests.ts";
import { LiveSocket } from "./live-socket.ts";

/** What a chat is waiting for, from events since the page was opened. */
export type PendingRequest = {
  readonly kind: WatchEvent["action_kind"];
  readonly tool_calls: readonly ToolCallRequest[];
};

/** Root chats by ID, newest first, without archived ones. */
export const chats = signal<ReadonlyMap<string, Chat>>(new Map());
export const chatsLoaded = signal(false);
/** Recently deleted chats, since the page was opened. */
export const deletedChats = signal<ReadonlySet<string>>(new Set());
/** How often the trials of each chat have changed since the page was opened, by chat ID. */
export const trialChanges = signal<ReadonlyMap<string, number>>(new Map());
const MAX_DELETED = 100;
/** What each chat is waiting for, by chat ID. */
export const pendingRequests = signal<ReadonlyMap<string, PendingRequest>>(new Map());

const PAGE_SIZE = 100;
const requests = new ListRequests();
let _socket: LiveSocket | undefined;

const loadChats = (): Promise<void> =>
  requests
    .load(
      () => call("GET /chats", { query: { limit: PAGE_SIZE } }),
      (found, isOutdated) => {
        const listed = new Map(found.map((chat) => [chat.id, chat]));
        for (const { id } of found) if (isOutdated(id) && !chats.value.has(id)) listed.delete(id);
        const newer = [...chats.value.values()].filter(({ id }) => isOutdated(id));
        // The event for a chat that was not in the list does not include its sub-chats.
        for (const chat of newer)
          listed.set(
            chat.id,
            chat.children.length > 0 ? chat : { ...chat, children: listed.get(chat.id)?.children ?? [] },
          );
        chats.value = newer.length === 0 ? listed : sortChats([...listed.values()]);
        chatsLoaded.value = true;
      },
    )
    .catch(() => {});

const sortChats = (chats: readonly Chat[]): ReadonlyMap<string, Chat> =>
  new Map(chats.toSorted((a, b) => (a.updated_at < b.updated_at ? 1 : -1)).map((chat) => [chat.id, chat]));

const handleMessage = (text: string): void => {
  const event = JSON.parse(text) as WatchEvent;
  const { kind, chat } = event;
  if (kind === "trial_change") {
    trialChanges.value = new Map(trialChanges.value).set(chat.id, (trialChanges.value.get(chat.id) ?? 0) + 1);
    return;
  }
  const pending = new Map(pendingRequests.value);
  if (kind === "action_required") pending.set(chat.id, { kind: event.action_kind, tool_calls: event.tool_calls ?? [] });
  else if (chat.status !== "requires_action") pending.delete(chat.id);
  pendingRequests.value = pending;
  if (kind === "deleted") deletedChats.value = new Set([...deletedChats.value, chat.id].slice(-MAX_DELETED));
  const next = new Map(chats.value);
  if (chat.parent_chat_id) {
    const root = next.get(chat.root_chat_id ?? chat.parent_chat_id);
    if (!root) return;
    const others = root.children.filter(({ id }) => id !== chat.id);
    const isRemoved = kind === "deleted" || chat.archived;
    const children = (isRemoved ? others : [...others, chat]).sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
    chats.value = next.set(root.id, { ...root, children: children as Chat["children"] });
    requests.noteChange(root.id);
    return;
  }
  if (kind === "deleted" || chat.archived) next.delete(chat.id);
  else next.set(chat.id, { ...chat, children: next.get(chat.id)?.children ?? [] });
  chats.value = sortChats([...next.values()]);
  requests.noteChange(chat.id);
};

/** Updates a chat locally: the server sends no events for pins, labels and read state. */
export const patchChat = (id: string, patch: Partial<Chat>): void => {
  const chat = chats.value.get(id);
  if (!chat) return;
  chats.value = new Map(chats.value).set(id, { ...chat, ...patch });
  requests.noteChange(id);
};

/** Starts following the chats. Called once for the app. */
export const followChats = (): void => {
  if (_socket) return;
  const isEmbedded = cameWithPage("GET", `/chats?limit=${PAGE_SIZE}`);
  if (isEmbedded) void loadChats();
  _socket = new LiveSocket({
    after: isEmbedded ? firstPaint : undefined,
    address: () => "/api/v2/chats/watch",
    onMessage: handleMessage,
    onOpen: () => void loadChats(),
  });
};
