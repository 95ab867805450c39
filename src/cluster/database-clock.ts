// The clock of a node among several: that of its machine, unless it is wrong. What one node writes the others judge by their clocks, so they have to agree.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";

/** Machines that keep time differ by less. */
const WRONG_MS = 1_000;

export class DatabaseClock implements Clock {
  readonly #own: Clock;
  #offset = 0;

  constructor(own: Clock) {
    this.#own = own;
  }

  now(): number {
    return this.#own.now() + this.#offset;
  }

  monotonic(): number {
    return this.#own.monotonic();
  }

  after(ms: number, run: () => void) {
    return this.#own.after(ms, run);
  }

  every(ms: number, run: () => void) {
    return this.#own.every(ms, run);
  }

  /** It is this time for the database; milliseconds since 1970. */
  correct(database_now: number): void {
    if (Math.abs(database_now - this.now()) < WRONG_MS) return;
    // Whole milliseconds: a database says more than a row of it holds.
    const offset = Math.round(database_now - this.#own.now());
    this.#offset = Math.abs(offset) < WRONG_MS ? 0 : offset;
    const seconds = Math.round(-offset / 1000);
    log("cluster").warn("this machine's clock is {seconds} s ahead of the database's, which is used", { seconds });
  }
}
