// Detects that a node has hung or its machine has disappeared while it was handling a forwarded request, which would otherwise wait until
// the connection breaks. The forwarding node checks whether the incarnation it asked has ended: other nodes own its shards then, and nothing
// it still does takes effect.
import type { Clock, Timer } from "#base/clock.ts";

const CHECK_INTERVAL_MS = 250;
/**
 * Checks without new data from a node that has ended: a node that leaves in order is given time to send the rest. Counts this process's own
 * checks rather than time, so that a stall of this process does not cut the node off.
 */
const MAX_MISSED = 3;

export type ForwardedRequest = {
  /** Nothing waits for the node any more. */
  readonly isOver: boolean;
  /** Returns whether the incarnation that was asked has ended. */
  isGone(): boolean;
  /** Incremented whenever data arrives from the node. */
  readonly receivedCount: number;
  /** The client does not read what has arrived, so the node is not read. */
  readonly isHeldUp: boolean;
  /** Stops waiting for the node. */
  cut(): void;
};

export class GoneNodeWatcher {
  readonly #watched = new Map<ForwardedRequest, { receivedCount: number; silent: number }>();
  readonly #timer: Timer;

  constructor(clock: Clock) {
    this.#timer = clock.every(CHECK_INTERVAL_MS, () => this.#checkAll());
  }

  /** Watches a forwarded request until it is over. */
  watch(one: ForwardedRequest): void {
    this.#watched.set(one, { receivedCount: -1, silent: 0 });
  }

  end(): void {
    this.#timer.cancel();
    this.#watched.clear();
  }

  #checkAll(): void {
    for (const [one, seen] of this.#watched) {
      if (one.isOver) this.#watched.delete(one);
      else if (one.isGone()) this.#count(one, seen);
      else seen.silent = 0;
    }
  }

  #count(one: ForwardedRequest, seen: { receivedCount: number; silent: number }): void {
    const isSilent = one.receivedCount === seen.receivedCount && !one.isHeldUp;
    seen.receivedCount = one.receivedCount;
    seen.silent = isSilent ? seen.silent + 1 : 0;
    if (seen.silent < MAX_MISSED) return;
    this.#watched.delete(one);
    one.cut();
  }
}
