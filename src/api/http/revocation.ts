// Ends what a key has opened when the key counts no more: revoked, expired, its user suspended, deleted or with a new password (rule
// ID-10); and what shows a workspace or chat when its caller has no part in it any more (rules SH-6, CS-5). Used by every route that keeps a
// connection open. All connections of one key to one thing share one watch.

import type { Access } from "#domain/live-access.ts";
import type { ApiContext } from "../context.ts";
import type { Caller } from "./caller.ts";
import { type Watch, watchFor } from "./revocation-watch.ts";
import { CLOSE, type Socket, type SocketHandler } from "./socket.ts";

type Deps = Pick<ApiContext, "store" | "clock" | "topics">;

/**
 * Calls `end` once, with a reason, when the caller's key (or agent token) is void. Also when it became void while the connection was
 * being set up. Returns how to stop listening.
 */
export const whenKeyGone = (ctx: Deps, caller: Caller, end: (reason: string) => void): (() => void) =>
  watchFor(ctx, caller).add({ lost: end });

/**
 * Calls `end` once, with a reason, when the key is void or the user may no longer do this: the workspace or chat is not shared with them any
 * more, or their roles or memberships have changed (rule SH-6). Returns how to stop listening.
 */
export const whenAccessLost = (
  ctx: Deps,
  caller: Caller,
  access: Access,
  end: (reason: string) => void,
): (() => void) => watchFor(ctx, caller, access).add({ lost: end });

/** The handler of a socket that closes (1008) when the caller's key is void: `upgrade(request, closeWhenKeyGone(ctx, caller, handler))`. */
export const closeWhenKeyGone = (ctx: Deps, caller: Caller, handler: SocketHandler): SocketHandler =>
  new Closing(watchFor(ctx, caller), handler);

/** The same, also when access is lost. */
export const closeWhenAccessLost = (ctx: Deps, caller: Caller, access: Access, handler: SocketHandler): SocketHandler =>
  new Closing(watchFor(ctx, caller, access), handler);

/** Passes everything on. A class and no closures: ten thousand followers hold one each. */
class Closing implements SocketHandler {
  #watch: Watch;
  readonly #handler: SocketHandler;
  #socket: Socket | undefined;

  constructor(watch: Watch, handler: SocketHandler) {
    this.#watch = watch;
    this.#handler = handler;
  }

  open(socket: Socket): void {
    this.#socket = socket;
    this.#watch = this.#watch.join(this);
    this.#handler.open?.(socket);
  }

  message(socket: Socket, data: string | Uint8Array): void {
    this.#handler.message?.(socket, data);
  }

  drain(socket: Socket): void {
    this.#handler.drain?.(socket);
  }

  close(socket: Socket, code: number, reason: string): void {
    this.#watch.leave(this);
    this.#handler.close?.(socket, code, reason);
  }

  lost(reason: string): void {
    this.#socket?.close(CLOSE.policy, reason);
  }
}
