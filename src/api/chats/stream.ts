// Streams one chat as WebSocket text frames, each a JSON array of events, or the same arrays as server-sent events (facts/chats 2.1). All
// checks run before the upgrade. The owner's read cursor moves on connect and on disconnect.
import { t } from "elysia";
import type { Timer } from "#base/clock.ts";
import { invalidField } from "#base/errors.ts";
import { log } from "#base/log.ts";
import type { ChatAccessRow } from "#db/chats/chats.ts";
import { findVisibleChat, makeChatAccess } from "#domain/chats/find.ts";
import { ChatEvent } from "#schema/chats/chat-event.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { eventStream } from "../http/event-stream.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { closeWhenAccessLost, watchAccess } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";
import { ChatFollower, type FollowOptions } from "./follower.ts";
import { chatPath, tags } from "./paths.ts";

/** Maximum bytes buffered for the client before more history is read. */
const PAUSE_BYTES = 64 * 1024;
/** A client that reads nothing for this long is disconnected (facts/chats 2.7). */
const STALL_TIMEOUT_MS = 10_000;

export const chatStream = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:chat/stream",
      async ({ caller, params, query, request }) => {
        const { after_id = 0 } = query;
        const { compat } = caller;
        if (after_id < 0) throw invalidField("after_id", "must be 0 or more");
        const chat = await findVisibleChat(ctx, params.chat, caller);
        const access = makeChatAccess(ctx, chat);
        const onSeen = () => markRead(ctx, chat, caller);
        if (!request.headers.get("accept")?.includes("text/event-stream")) {
          const handler = closeWhenAccessLost(
            ctx,
            caller,
            access,
            new ChatSocket(ctx, chat, { after_id, compat, user_id: caller.user_id }, onSeen),
          );
          return ctx.sockets.upgrade(request, handler, { who: caller.user_id });
        }
        return eventStream(ctx, request, (stream) => {
          const follower = new ChatFollower(
            ctx,
            chat,
            { after_id, compat, user_id: caller.user_id },
            {
              send: (frame) => void stream.send("data", frame),
              waitForRoom: async () => {
                const stallTimer = ctx.clock.after(STALL_TIMEOUT_MS, () => stream.terminate());
                const hasRoom = await stream.waitForRoom(PAUSE_BYTES);
                stallTimer.cancel();
                return hasRoom;
              },
              end: (why) => (why === "failed" ? stream.end() : stream.terminate()),
            },
          );
          follower.start();
          onSeen();
          const stopWatching = watchAccess(ctx, caller, access, () => stream.end());
          return () => {
            follower.stop();
            stopWatching();
            onSeen();
          };
        });
      },
      {
        user: true,
        params: chatPath,
        query: t.Object({
          after_id: t.Optional(t.Integer({ description: "Omit messages of the snapshot up to this ID." })),
        }),
        response: {
          200: t.Unknown({ description: "Switches to a WebSocket, or starts the event stream." }),
          ...fails(400, 401, 404, 503),
        },
        detail: operation({
          tags,
          operationId: "streamChat",
          summary: "Stream a chat",
          answers: ["text/event-stream"],
          description:
            "A WebSocket. Each text frame is a JSON array of at most 256 events: first the snapshot (messages, queue_update, status, error, action_required, retry, preview_reset, message_part), then every change in the same order. A message from the client closes the connection. With `Accept: text/event-stream`, the same arrays are sent as `data` events.",
          sends: t.Array(ChatEvent),
          access: "owner",
          scope: "chat:read",
          placement: "chat",
        }),
      },
    );

const markRead = (ctx: ApiContext, { id, owner_id }: ChatAccessRow, caller: UserCaller): void => {
  if (caller.user_id !== owner_id) return;
  ctx.chats.ask(id, "markRead", {}).catch((error) => {
    log("chats").warn("cannot move the read cursor of chat {id}: {error}", { id, error });
  });
};

class ChatSocket implements SocketHandler {
  readonly #makeFollower: (socket: Socket) => ChatFollower;
  readonly #ctx: ApiContext;
  readonly #onSeen: () => void;
  #follower: ChatFollower | undefined;
  #resume: (() => void) | undefined;

  constructor(ctx: ApiContext, chat: ChatAccessRow, options: FollowOptions, onSeen: () => void) {
    this.#ctx = ctx;
    this.#onSeen = onSeen;
    this.#makeFollower = (socket) =>
      new ChatFollower(ctx, chat, options, {
        send: (frame) => void socket.send(frame),
        waitForRoom: () => this.#waitForRoom(socket),
        end: (why) => {
          if (why === "failed") socket.close(CLOSE.internal, "the chat could not be read");
          else socket.closeSlow();
        },
      });
  }

  open(socket: Socket): void {
    this.#follower = this.#makeFollower(socket);
    this.#follower.start();
    this.#onSeen();
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  drain(): void {
    this.#resume?.();
  }

  close(): void {
    this.#follower?.stop();
    this.#resume?.();
    this.#onSeen();
  }

  async #waitForRoom(socket: Socket): Promise<boolean> {
    while (socket.waiting > PAUSE_BYTES && !socket.closing) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#resume = resolve;
      const stallTimer: Timer = this.#ctx.clock.after(STALL_TIMEOUT_MS, () => {
        socket.closeSlow();
        resolve();
      });
      await promise;
      stallTimer.cancel();
      this.#resume = undefined;
    }
    return !socket.closing;
  }
}
