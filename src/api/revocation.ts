// Ends what a key has opened when the key counts no more: revoked, expired by hand, its user suspended, deleted or with a new password
// (rule ID-10). Used by every route that keeps a connection open.
import { findKeyWithUser } from "#db/api-keys.ts";
import type { Caller } from "./caller.ts";
import type { ApiContext } from "./context.ts";
import { CLOSE, type Socket, type SocketHandler } from "./socket.ts";

type Parts = Pick<ApiContext, "store" | "clock" | "topics">;

const REASON = "the session has ended, sign in again";

/**
 * Calls `end` once when the caller's key (or agent token) is void. Also when it became void while the connection was being set up.
 * Returns how to stop listening.
 */
export const whenKeyGone = (ctx: Parts, caller: Caller, end: () => void): (() => void) => {
  let isOver = false;
  const stop = (): void => {
    isOver = true;
    for (const unsubscribe of subscriptions) unsubscribe();
  };
  const gone = (): void => {
    if (isOver) return;
    stop();
    end();
  };
  const subscriptions =
    caller.kind === "agent"
      ? [ctx.topics.subscribe("agent_gone", caller.agent_id, gone)]
      : [
          ctx.topics.subscribe("key_gone", caller.key_id, gone),
          ctx.topics.subscribe("key_gone", caller.user_id, ({ except }) => {
            if (except !== caller.key_id) gone();
          }),
        ];
  if (caller.kind === "user") {
    isAlive(ctx, caller.key_id).then(
      (alive) => alive || gone(),
      () => {},
    );
  }
  return stop;
};

const isAlive = async ({ store, clock }: Parts, id: string): Promise<boolean> => {
  const key = await store.get(findKeyWithUser({ id }));
  return key !== undefined && !key.deleted && key.status !== "suspended" && key.expires_at > clock.now();
};

/** The handler of a socket that closes (1008) when the caller's key is void: `upgrade(request, closeWhenKeyGone(ctx, caller, handler))`. */
export const closeWhenKeyGone = (ctx: Parts, caller: Caller, handler: SocketHandler): SocketHandler => {
  const stops = new WeakMap<Socket, () => void>();
  return {
    open(socket) {
      stops.set(
        socket,
        whenKeyGone(ctx, caller, () => socket.close(CLOSE.policy, REASON)),
      );
      handler.open?.(socket);
    },
    message: (socket, data) => handler.message?.(socket, data),
    drain: (socket) => handler.drain?.(socket),
    close(socket, code, reason) {
      stops.get(socket)?.();
      handler.close?.(socket, code, reason);
    },
  };
};
