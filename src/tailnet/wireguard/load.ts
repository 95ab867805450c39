// Counts incoming handshakes: above a rate, only senders with a cookie are answered. [TL-20]
import type { Clock } from "#base/clock.ts";

/** A handshake costs about a millisecond of CPU time. Up to this many per second are answered without a cookie. */
export const MAX_HANDSHAKES_PER_SECOND = 100;
/** Minimum duration of the load state. */
const MIN_LOAD_DURATION_MS = 1_000;

export class HandshakeLoad {
  readonly #clock: Clock;
  #since = Number.NEGATIVE_INFINITY;
  #count = 0;
  #loadedUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a handshake; returns true if there are too many. */
  countInitiation(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#since >= 1_000) {
      this.#since = now;
      this.#count = 0;
    }
    this.#count += 1;
    if (this.#count > MAX_HANDSHAKES_PER_SECOND) this.#loadedUntil = now + MIN_LOAD_DURATION_MS;
    return now < this.#loadedUntil;
  }
}
