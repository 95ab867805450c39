// Counts incoming handshakes. Above a rate, only senders with a cookie get an answer. [TL-20]
import type { Clock } from "#base/clock.ts";

/** A handshake costs about a millisecond of CPU time. Up to this many per second are answered without a cookie. */
export const MAX_HANDSHAKES_PER_SECOND = 100;
/** Minimum time for which a cookie is required after the rate was exceeded. */
const MIN_LOAD_DURATION_MS = 1_000;

export class HandshakeLoad {
  readonly #clock: Clock;
  #since = Number.NEGATIVE_INFINITY;
  #count = 0;
  #underLoadUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a handshake. Returns true if there are too many, so that a cookie is required. */
  countInitiation(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#since >= 1_000) {
      this.#since = now;
      this.#count = 0;
    }
    this.#count += 1;
    if (this.#count > MAX_HANDSHAKES_PER_SECOND) this.#underLoadUntil = now + MIN_LOAD_DURATION_MS;
    return now < this.#underLoadUntil;
  }
}
