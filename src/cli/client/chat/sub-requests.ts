// Follows the approval requests of a chat's sub-chats, while the chat waits for the sub-chats. Sub-chats have separate streams, so a
// follower of the chat alone would not see the requests (rule CV-17). The watch of all the user's chats contains new requests. After each
// connect, the streams of waiting sub-chats are read for requests that are already open.
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatEvent, WatchEvent } from "#schema/chats/chat-event.ts";
import { ApiError, type Client, type ClientSocket } from "#src/client.ts";
import { openSocket } from "../remote.ts";

const RETRY_INTERVAL_MS = 2_000;
const WAITING_STATUS = "requires_action";

type Options = {
  readonly client: Client;
  readonly clock: Clock;
  /** The chat whose sub-chats are watched. */
  readonly chat_id: string;
  /** Receives statuses and approval requests of a sub-chat with this title. */
  readonly onEvent: (event: ChatEvent, title: string) => void;
};

export class SubRequests implements Disposable {
  readonly #options: Options;
  #socket: ClientSocket | undefined;
  #isClosed = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Runs until disposed, or until the server refuses the watch. Never rejects. */
  async follow(): Promise<void> {
    const { client, clock } = this.#options;
    while (!this.#isClosed) {
      try {
        using socket = await openSocket(client, "/api/v2/chats/watch");
        this.#socket = socket;
        if (this.#isClosed) return;
        await this.#reportWaiting();
        for await (const frame of socket) this.#handle(JSON.parse(String(frame)) as WatchEvent);
      } catch (error) {
        if (error instanceof ApiError && error.status < 500) return;
      }
      if (!this.#isClosed) await pause(clock, RETRY_INTERVAL_MS);
    }
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#socket?.close();
  }

  #handle({ chat, action_kind, tool_calls }: WatchEvent): void {
    const { id: chat_id, parent_chat_id, status, title } = chat;
    if (parent_chat_id !== this.#options.chat_id) return;
    if (status !== WAITING_STATUS) this.#options.onEvent({ type: "status", chat_id, status: { status } }, title);
    if (action_kind !== "permission" || !tool_calls) return;
    const action_required = { kind: action_kind, tool_calls };
    this.#options.onEvent({ type: "action_required", chat_id, action_required }, title);
  }

  async #reportWaiting(): Promise<void> {
    const { client, chat_id, onEvent } = this.#options;
    const { children } = await client.get(`/api/v2/chats/${chat_id}`);
    for (const { id, status, title } of children as Chat[]) {
      // A request from before the disconnect may have been answered.
      if (status !== WAITING_STATUS) onEvent({ type: "status", chat_id: id, status: { status } }, title);
      else await this.#reportChat(id, title);
    }
  }

  /** Reports the current status and open request of a sub-chat, which are the first events of its stream. */
  async #reportChat(id: string, title: string): Promise<void> {
    const { client, onEvent } = this.#options;
    using socket = await openSocket(client, `/api/v2/chats/${id}/stream?after_id=${Number.MAX_SAFE_INTEGER}`);
    for await (const frame of socket) {
      for (const event of JSON.parse(String(frame)) as ChatEvent[]) {
        if (event.type !== "status" && event.type !== "action_required") continue;
        onEvent(event, title);
        if (event.type === "action_required" || event.status.status !== WAITING_STATUS) return;
      }
    }
  }
}
