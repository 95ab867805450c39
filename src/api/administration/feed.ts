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
type StartFeed = (feed: Feed) => () => void;

const PING = '{"type":"ping"}';
const heartbeats = new WeakMap<ApiContext, Heartbeat>();

const getHeartbeat = (ctx: ApiContext): Heartbeat => {
  const shared = heartbeats.get(ctx) ?? new Heartbeat(ctx.clock);
  heartbeats.set(ctx, shared);
  return shared;
};

export const openFeed = (
  ctx: ApiContext,
  caller: UserCaller,
  request: Request,
  access: Access,
  start: StartFeed,
): Response => {
  const handler = closeWhenAccessLost(ctx, caller, access, new FeedSocket(getHeartbeat(ctx), start));
  return ctx.sockets.upgrade(request, handler, { who: caller.user_id });
};

/** Like `openFeed`, but restricted to site owners. */
export const openOwnersFeed = (ctx: ApiContext, caller: UserCaller, request: Request, start: StartFeed): Response =>
  openFeed(ctx, caller, request, toOwnerAccess(caller), start);

const toOwnerAccess = ({ user_id }: UserCaller): Access => ({
  key: "owner",
  topic: user_id,
  lossReason: "you are no longer an owner",
  isStillAllowed: async ({ roles }) => roles.includes("owner"),
});

class FeedSocket implements SocketHandler {
  readonly #heartbeat: Heartbeat;
  readonly #start: StartFeed;
  #cleanups: readonly (() => void)[] = [];

  constructor(heartbeat: Heartbeat, start: StartFeed) {
    this.#heartbeat = heartbeat;
    this.#start = start;
  }

  open(socket: Socket): void {
    const stop = this.#start({
      send: (text) => socket.send(text, true),
      fail: () => socket.close(CLOSE.internal, "it cannot be read now"),
    });
    this.#cleanups = [stop, this.#heartbeat.join(() => socket.send(PING))];
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  close(): void {
    for (const cleanUp of this.#cleanups) cleanUp();
  }
}
