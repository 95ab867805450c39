// Closes connections when their key becomes invalid because it is revoked or expired, or its user is suspended, deleted or has a new
// password (rule ID-10), and when their caller loses access to the workspace or chat (rules SH-6, CS-5). Used by every route with
// long-lived connections. All connections of one key to one resource share a watch.

import type { Access } from "#domain/live-access.ts";
import type { ApiContext } from "../context.ts";
import type { Caller } from "./caller.ts";
import { getWatch, type Watch } from "./revocation-watch.ts";
import { CLOSE, type Socket, type SocketHandler } from "./socket.ts";

type Deps = Pick<ApiContext, "store" | "clock" | "topics">;

/**
 * Calls `end` once, with a reason, when the caller's key or agent token becomes invalid, including while the connection is being set up.
 * Returns a function that stops listening.
 */
export const watchKey = (ctx: Deps, caller: Caller, end: (reason: string) => void): (() => void) =>
  getWatch(ctx, caller).add({ onLost: end });

/**
 * Calls `end` once, with a reason, when the key becomes invalid or the user loses access: the workspace or chat is no longer shared with
 * them, or their roles or memberships have changed (rule SH-6). Returns a function that stops listening.
 */
export const watchAccess = (ctx: Deps, caller: Caller, access: Access, end: (reason: string) => void): (() => void) =>
  getWatch(ctx, caller, access).add({ onLost: end });

/**
 * Wraps a socket handler so that the socket closes (1008) when the caller's key becomes invalid: `upgrade(request, closeWhenKeyRevoked(ctx,
 * caller, handler))`.
 */
export const closeWhenKeyRevoked = (ctx: Deps, caller: Caller, handler: SocketHandler): SocketHandler =>
  new GuardedSocket(getWatch(ctx, caller), handler);

/** Like `closeWhenKeyRevoked`, and also closes when access is lost. */
export const closeWhenAccessLost = (ctx: Deps, caller: Caller, access: Access, handler: SocketHandler): SocketHandler =>
  new GuardedSocket(getWatch(ctx, caller, access), handler);

/** Forwards everything. A class instead of closures, because there is one for each of ten thousand followers. */
class GuardedSocket implements SocketHandler {
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

  onLost(reason: string): void {
    this.#socket?.close(CLOSE.policy, reason);
  }
}
