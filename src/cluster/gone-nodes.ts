// What was passed on to a node that stands still, or whose machine no longer exists, would wait for it as long as nothing breaks the connection. Anyone who has
// passed it on looks whether the life of the node is over that was asked: others have its parts then, and nothing that it still does counts.
import type { Clock, Timer } from "#base/clock.ts";

const LOOK_MS = 250;
/** Looks at which nothing more has come from a node that no longer exists: one that leaves in order is given the time to say the rest. Counted in looks of our own. */
const MAX_MISSED = 3;

export type PassedOn = {
  /** Nothing waits for the node any more. */
  readonly isOver: boolean;
  /** Whether the life of the node has ended that was asked. */
  isGone(): boolean;
  /** Raised with all that comes from the node. */
  readonly heard: number;
  /** The client does not take what has come: the node is not read. */
  readonly isHeldUp: boolean;
  /** The node is waited for no longer. */
  cut(): void;
};

export class GoneNodes {
  readonly #passed = new Map<PassedOn, { heard: number; silent: number }>();
  readonly #timer: Timer;

  constructor(clock: Clock) {
    this.#timer = clock.every(LOOK_MS, () => this.#look());
  }

  /** Looks at it from now on, until it is over. */
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
