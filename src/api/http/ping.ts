// What is open now, pinged in turn: each once in a period and a hundredth of them at a time, since ten thousand pings in one go hold
// everyone else up for 90 ms (test/bench, row idle). One timer for all, none while nothing is open. Used for sockets and event streams.
import type { Clock, Timer } from "#base/clock.ts";

const PERIOD_MS = 15_000;
const SLICES = 100;

export class PingTimer<T extends { ping(): void }> {
  readonly #clock: Clock;
  readonly #slices: readonly Set<T>[] = Array.from({ length: SLICES }, () => new Set<T>());
  #size = 0;
  /** Where the next one goes: what comes at once is spread over the period. */
  #filling = 0;
  #due = 0;
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#size;
  }

  /** From now on it is pinged every 15 seconds, the first time within them. */
  add(one: T): void {
    // The slice that was just visited, and from there backwards, so that the first ping of a lone one is a whole period away.
    this.#filling = (this.#filling + SLICES - 1) % SLICES;
    const empty = this.#size === 0;
    (this.#slices[empty ? (this.#due + SLICES - 1) % SLICES : this.#filling] as Set<T>).add(one);
    if (empty) this.#timer = this.#clock.every(PERIOD_MS / SLICES, () => this.#visit());
    this.#size += 1;
  }

  /** False when it was not here. */
  delete(one: T): boolean {
    if (!this.#slices.some((slice) => slice.delete(one))) return false;
    this.#size -= 1;
    if (this.#size === 0) this.#timer?.cancel();
    return true;
  }

  /** All of them, as they are at this moment. */
  all(): T[] {
    return this.#slices.flatMap((slice) => [...slice]);
  }

  #visit(): void {
    for (const one of this.#slices[this.#due] as Set<T>) one.ping();
    this.#due = (this.#due + 1) % SLICES;
  }
}
