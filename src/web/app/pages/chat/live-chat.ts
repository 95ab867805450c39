// One chat, live: loads the newest messages first and older ones on demand, then follows the stream from the last ID. Recent chats are
// kept, so that returning to one is instant.
import { computed, type ReadonlySignal, signal } from "@preact/signals";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import { call, Problem } from "../../data/api.ts";
import { patchChat } from "../../data/chats.ts";
import { LiveSocket, onRefused } from "../../data/live-socket.ts";
import {
  applyFrame,
  type ChatState,
  collectResults,
  EMPTY_STATE,
  isIdle,
  mergeMessages,
  reconcileMessages,
} from "./picture.ts";

/** Number of messages loaded first, and each time the user scrolls to the top. */
export const PAGE_SIZE = 40;
const MAX_CACHED_CHATS = 8;

export class LiveChat {
  readonly id: string;
  /** The chat with fields that the list lacks: context, files, permissions. */
  readonly chat = signal<Chat | undefined>(undefined);
  readonly state = signal<ChatState>(EMPTY_STATE);
  readonly messages: ReadonlySignal<ChatState["messages"]> = computed(() => this.state.value.messages);
  readonly live: ReadonlySignal<ChatState["live"]> = computed(() => this.state.value.live);
  readonly liveResults: ReadonlySignal<ChatState["liveResults"]> = computed(() => this.state.value.liveResults);
  readonly status: ReadonlySignal<ChatState["status"]> = computed(() => this.state.value.status);
  readonly results = computed(() => collectResults(this.messages.value));
  readonly isBusy = computed(() => this.status.value !== undefined && !isIdle(this.status.value));
  /** Increments with each finished turn, which may have changed the chat's cost and model. */
  readonly turnCount = computed(() => this.state.value.turnCount);
  readonly hasMore = signal(false);
  /** The error of the first load. */
  readonly failure = signal<unknown>(undefined);
  readonly isLoaded = signal(false);
  #socket: LiveSocket | undefined;
  #stopRefusalListener = (): void => {};
  #followerCount = 0;
  /** Numbers the requests for the chat, so that outdated answers are dropped. */
  #lastRequest = 0;
  #lastApplied = 0;
  #olderLoad: Promise<void> | undefined;

  constructor(id: string) {
    this.id = id;
  }

  /** Follows the chat until every follower has stopped. */
  follow(): () => void {
    this.#followerCount += 1;
    if (this.#followerCount === 1) void this.#start();
    return () => {
      this.#followerCount -= 1;
      if (this.#followerCount > 0) return;
      this.#end();
      patchChat(this.id, { has_unread: false });
    };
  }

  /** Reloads the chat itself: its model, title and context. An answer that is older than the one shown is dropped. */
  async refresh(): Promise<void> {
    const number = ++this.#lastRequest;
    const chat = await call("GET /chats/:chat", { path: { chat: this.id } });
    if (number < this.#lastApplied) return;
    this.#lastApplied = number;
    this.chat.value = chat;
  }

  /** Reloads the chat after a refused connection. It may have been deleted or unshared; then following stops. */
  async reloadAfterRefusal(): Promise<void> {
    try {
      await this.refresh();
    } catch (error) {
      if (!(error instanceof Problem) || !/^(40[034]|410)$/.test(String(error.status))) return;
      this.failure.value = error;
      this.#end();
    }
  }

  #end(): void {
    this.#stopRefusalListener();
    this.#socket?.end();
    this.#socket = undefined;
  }

  /** Loads the page before the oldest loaded message. */
  async loadOlder(): Promise<void> {
    const before_id = this.messages.value[0]?.id;
    if (!this.hasMore.value || before_id === undefined) return;
    this.#olderLoad ??= call("GET /chats/:chat/messages", {
      path: { chat: this.id },
      query: { limit: PAGE_SIZE, before_id },
    })
      .then(({ messages, has_more }) => {
        this.#changeState((current) => ({ ...current, messages: mergeMessages(current.messages, messages) }));
        this.hasMore.value = has_more;
      })
      .finally(() => {
        this.#olderLoad = undefined;
      });
    await this.#olderLoad;
  }

  /** Keeps only the newest messages, so that a page that is open for days does not grow without limit. */
  trimMessages(maxCount: number): void {
    if (this.messages.value.length <= maxCount) return;
    this.#changeState((current) => ({ ...current, messages: current.messages.slice(-maxCount) }));
    this.hasMore.value = true;
  }

  #changeState(change: (current: ChatState) => ChatState): void {
    this.state.value = change(this.state.value);
  }

  async #start(): Promise<void> {
    try {
      void this.refresh().catch((error) => {
        this.failure.value = error;
      });
      await this.#loadNewest();
      this.isLoaded.value = true;
      this.failure.value = undefined;
    } catch (error) {
      this.failure.value = error;
      return;
    }
    if (this.#followerCount === 0) return;
    let isFirst = true;
    // A refused WebSocket does not report why.
    this.#stopRefusalListener = onRefused(() => void this.reloadAfterRefusal());
    this.#socket = new LiveSocket({
      address: () => `/api/v2/chats/${this.id}/stream?after_id=${this.messages.value.at(-1)?.id ?? 0}`,
      onMessage: (text) => {
        const frame = JSON.parse(text) as ChatEvent[];
        const { turnCount } = this.state.value;
        this.#changeState((current) => applyFrame(current, frame));
        // The turn may have changed the chat's title, model, files or workspace.
        if (this.state.value.turnCount > turnCount) void this.refresh().catch(() => {});
      },
      onOpen: () => {
        // Messages may have been edited during the disconnect.
        if (!isFirst) void this.#loadNewest().catch(() => {});
        isFirst = false;
      },
    });
  }

  async #loadNewest(): Promise<void> {
    const page = await call("GET /chats/:chat/messages", { path: { chat: this.id }, query: { limit: PAGE_SIZE } });
    const { messages: current } = this.state.value;
    const loaded = page.messages.toReversed();
    // Messages from the stream may be newer than the loaded page.
    const lastId = loaded.at(-1)?.id ?? 0;
    const newer = this.#socket ? current.filter(({ id }) => id > lastId) : [];
    const messages = mergeMessages(reconcileMessages(current, loaded, page.has_more), newer);
    if (messages[0]?.id === loaded[0]?.id) this.hasMore.value = page.has_more;
    this.#changeState((current) => ({ ...current, messages }));
  }
}

const cachedChats = new Map<string, LiveChat>();

/** Returns the same object for the same ID while it is among the recently opened chats. */
export const getLiveChat = (id: string): LiveChat => {
  const chat = cachedChats.get(id) ?? new LiveChat(id);
  cachedChats.delete(id);
  cachedChats.set(id, chat);
  const [oldest] = cachedChats.keys();
  if (cachedChats.size > MAX_CACHED_CHATS && oldest !== undefined) cachedChats.delete(oldest);
  return chat;
};
