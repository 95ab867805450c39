// A send-only WebSocket for administrators. It closes when the caller's API key or their access ends.
import type { Access } from "#domain/live-access.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { closeWhenAccessLost } from "../http/revocation.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";
import { Heartbeat } from "../workspaces/heartbeat.ts";

export type Feed = {
  /** Returns false when the client has disconnected. */
  readonly send: (text: string) => boolean;
  /** Closes the socket because the data cannot be read. */
  readonly fail: () => void;
};

/** Starts sending and returns a function that stops it. */
type Begin = (feed: Feed) => () => void;

const PING = '{"type":"ping"}';
const heartbeat = new WeakMap<ApiContext, Heartbeat>();

const makeHeartbeat = (ctx: ApiContext): Heartbeat => {
  const known = heartbeat.get(ctx) ?? new Heartbeat(ctx.clock);
  heartbeat.set(ctx, known);
  return known;
};

export const feed = (ctx: ApiContext, caller: UserCaller, request: Request, access: Access, begin: Begin): Response => {
  const handler = closeWhenAccessLost(ctx, caller, access, new FeedSocket(makeHeartbeat(ctx), begin));
  return ctx.sockets.upgrade(request, handler, { who: caller.user_id });
};

/** Like `feed`, but restricted to site owners. */
export const ownersFeed = (ctx: ApiContext, caller: UserCaller, request: Request, begin: Begin): Response =>
  feed(ctx, caller, request, ownerAccess(caller), begin);

const ownerAccess = ({ user_id }: UserCaller): Access => ({
  key: "owner",
  topic: user_id,
  lost: "you are no longer an owner",
  holds: async ({ roles }) => roles.includes("owner"),
});

class FeedSocket implements SocketHandler {
  readonly #heartbeat: Heartbeat;
  readonly #begin: Begin;
  #ends: readonly (() => void)[] = [];

  constructor(heartbeat: Heartbeat, begin: Begin) {
    this.#heartbeat = heartbeat;
    this.#begin = begin;
  }

  open(socket: Socket): void {
    const stop = this.#begin({
      send: (text) => socket.send(text, true),
      fail: () => socket.close(CLOSE.internal, "it cannot be read now"),
    });
    this.#ends = [stop, this.#heartbeat.join(() => socket.send(PING))];
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  close(): void {
    for (const end of this.#ends) end();
  }
}
