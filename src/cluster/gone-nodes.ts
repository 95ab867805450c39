// Detects that a node has hung or its machine has disappeared while it was handling a forwarded request, which would otherwise wait until
// the connection breaks. The forwarding node checks whether the incarnation it asked has ended: other nodes own its parts then, and nothing
// it still does takes effect.
import type { Clock, Timer } from "#base/clock.ts";

const LOOK_MS = 250;
/**
 * Checks without new data from a node that has ended: a node that leaves in order is given time to send the rest. Counts this process's own
 * checks rather than time, so that a stall of this process does not cut the node off.
 */
const MAX_MISSED = 3;

export type PassedOn = {
  /** Nothing waits for the node any more. */
  readonly isOver: boolean;
  /** Returns whether the incarnation that was asked has ended. */
  isGone(): boolean;
  /** Incremented whenever data arrives from the node. */
  readonly heard: number;
  /** The client does not read what has arrived, so the node is not read. */
  readonly isHeldUp: boolean;
  /** Stops waiting for the node. */
  cut(): void;
};

export class GoneNodes {
  readonly #passed = new Map<PassedOn, { heard: number; silent: number }>();
  readonly #timer: Timer;

  constructor(clock: Clock) {
    this.#timer = clock.every(LOOK_MS, () => this.#look());
  }

  /** Watches a forwarded request until it is over. */
  watch(one: PassedOn): void {
    this.#passed.set(one, { heard: -1, silent: 0 });
  }

  end(): void {
    this.#timer.cancel();
    this.#passed.clear();
  }

  #look(): void {
    for (const [one, seen] of this.#passed) {
      if (one.isOver) this.#passed.delete(one);
      else if (one.isGone()) this.#count(one, seen);
      else seen.silent = 0;
    }
  }

  #count(one: PassedOn, seen: { heard: number; silent: number }): void {
    const isSilent = one.heard === seen.heard && !one.isHeldUp;
    seen.heard = one.heard;
    seen.silent = isSilent ? seen.silent + 1 : 0;
    if (seen.silent < MAX_MISSED) return;
    this.#passed.delete(one);
    one.cut();
  }
}
