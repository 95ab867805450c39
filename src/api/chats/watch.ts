// Watches all chats of the caller: one JSON object per text frame, no snapshot, no cursor (facts/chats 2.10). A client that reconnects
// reads the list again.
import type { Events } from "#actors/runtime/events.ts";
import { log } from "#base/log.ts";
import { type ChatView, findChatView } from "#db/chats/views.ts";
import { presentChat } from "#domain/chats/present.ts";
import { WatchEvent } from "#schema/chats/chat-event.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { closeWhenKeyRevoked } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";
import { tags } from "./paths.ts";
import { toActionRequired } from "./sync.ts";

/** Maximum events waiting for their chat to be read. */
const MAX_PENDING_EVENTS = 1_024;

export const chatWatch = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/watch",
      ({ caller, request }) => {
        const handler = closeWhenKeyRevoked(ctx, caller, new WatchSocket(ctx, caller.user_id));
        return ctx.sockets.upgrade(request, handler, { who: caller.user_id });
      },
      {
        user: true,
        response: { 200: Upgraded, ...fails(400, 401, 503) },
        detail: operation({
          tags,
          operationId: "watchChats",
          summary: "Watch your chats",
          description:
            'A WebSocket of text messages `{"kind", "chat", "tool_calls", "action_kind"}` for `created`, `deleted`, `status_change`, `title_change`, `action_required` and others. There is no snapshot. A message from the client closes the connection.',
          sends: WatchEvent,
          access: "users",
          scope: "chat:read",
          placement: "owner",
        }),
      },
    );

const presentPendingAction = (
  pending_calls: Events["owner_chats"]["pending_calls"],
  { budget_pause }: Pick<ChatView["chat"], "budget_pause">,
): Partial<WatchEvent> => {
  if (!pending_calls) return {};
  const { kind, tool_calls, budget } = toActionRequired({ pending_calls: [...pending_calls], budget_pause });
  return { ...(kind ? { action_kind: kind } : {}), tool_calls, ...(budget ? { budget } : {}) };
};

class WatchSocket implements SocketHandler {
  readonly #ctx: ApiContext;
  readonly #ownerId: string;
  #unsubscribes: readonly (() => void)[] = [];
  #lastSend: Promise<void> = Promise.resolve();
  #pendingCount = 0;

  constructor(ctx: ApiContext, ownerId: string) {
    this.#ctx = ctx;
    this.#ownerId = ownerId;
  }

  open(socket: Socket): void {
    const { topics } = this.#ctx;
    // The client reconnects and reads the list.
    const onMissed = (): void => socket.close(CLOSE.goingAway, "events may have been missed: read the list again");
    this.#unsubscribes = [
      topics.subscribe("owner_chats", this.#ownerId, (event) => this.#enqueue(socket, event)),
      topics.subscribe("missed", "", onMissed),
    ];
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
  }

  #enqueue(socket: Socket, event: Events["owner_chats"]): void {
    if (this.#pendingCount >= MAX_PENDING_EVENTS) {
      socket.closeSlow();
      return;
    }
    this.#pendingCount += 1;
    this.#lastSend = this.#lastSend
      .then(() => this.#sendEvent(socket, event))
      .finally(() => {
        this.#pendingCount -= 1;
      });
  }

  async #sendEvent(socket: Socket, { kind, chat_id, pending_calls }: Events["owner_chats"]): Promise<void> {
    if (socket.closing) return;
    try {
      const view = await this.#ctx.store.get(findChatView(chat_id));
      if (!view) return;
      const event: WatchEvent = {
        kind,
        chat: presentChat(view, []),
        ...presentPendingAction(pending_calls, view.chat),
      };
      socket.send(JSON.stringify(event));
    } catch (error) {
      log("chats").warn("an event about chat {chat_id} is lost: {error}", { chat_id, error });
      socket.close(CLOSE.internal, "the chat could not be read");
    }
  }
}
