// Pings open connections in turn: each once per period, and a hundredth of them at a time, because ten thousand pings in one go block the
// event loop for 90 ms (test/bench, row idle). One timer serves all and stops when nothing is open. Used for sockets and event streams.
import type { Clock, Timer } from "#base/clock.ts";

const PING_INTERVAL_MS = 15_000;
const SLICES = 100;

export class PingTimer<T extends { ping(): void }> {
  readonly #clock: Clock;
  readonly #slices: readonly Set<T>[] = Array.from({ length: SLICES }, () => new Set<T>());
  #size = 0;
  /** The slice for the next connection: connections that open together are spread over the period. */
  #fillIndex = 0;
  #dueIndex = 0;
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#size;
  }

  /** Starts pinging a connection every 15 seconds; the first ping comes within that time. */
  add(connection: T): void {
    // Filling starts at the slice that was just visited and moves backwards, so that the first ping of a lone connection is a whole period
    // away.
    this.#fillIndex = (this.#fillIndex + SLICES - 1) % SLICES;
    const isEmpty = this.#size === 0;
    (this.#slices[isEmpty ? (this.#dueIndex + SLICES - 1) % SLICES : this.#fillIndex] as Set<T>).add(connection);
    if (isEmpty) this.#timer = this.#clock.every(PING_INTERVAL_MS / SLICES, () => this.#pingSlice());
    this.#size += 1;
  }

  /** Returns false when it was not registered. */
  delete(connection: T): boolean {
    if (!this.#slices.some((slice) => slice.delete(connection))) return false;
    this.#size -= 1;
    if (this.#size === 0) this.#timer?.cancel();
    return true;
  }

  /** Returns all connections at this moment. */
  all(): T[] {
    return this.#slices.flatMap((slice) => [...slice]);
  }

  #pingSlice(): void {
    for (const connection of this.#slices[this.#dueIndex] as Set<T>) connection.ping();
    this.#dueIndex = (this.#dueIndex + 1) % SLICES;
  }
}
