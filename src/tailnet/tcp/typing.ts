// On which connections with a peer someone types, so that bulk on the others leaves them room. [TL-24]
import type { Clock } from "#base/clock.ts";

/** Who typed within this time may type again. */
const TYPING_MS = 1_000;

export class Typing<Connection> {
  readonly #clock: Clock;
  /** When each was last typed on, the earliest first. */
  readonly #latest = new Map<Connection, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something is written on it. What begins with a word and continues with bulk, as a download does, is nobody who types. */
  written(connection: Connection, isLittle: boolean): void {
    if (this.#latest.size > 0) this.#latest.delete(connection);
    if (isLittle) this.#latest.set(connection, this.#clock.monotonic());
  }

  /** Whether someone types on another one than this. Forgets who has stopped: this runs for every acknowledgement. */
  isBeside(connection: Connection): boolean {
    if (this.#latest.size === 0) return false;
    const since = this.#clock.monotonic() - TYPING_MS;
    for (const [one, at] of this.#latest) {
      if (at < since) this.#latest.delete(one);
      else if (one !== connection) return true;
    }
    return false;
  }

  /** It has ended. */
  forget(connection: Connection): void {
    this.#latest.delete(connection);
  }
}
