// The clock of a cluster node: its machine's clock, corrected by the database's if it is wrong. Nodes judge each other's timestamps, so
// their clocks must agree.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";

/** Machines with synchronized clocks differ by less. */
const MIN_CORRECTION_MS = 1_000;

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

  /** Corrects the clock with the database's time; milliseconds since 1970. */
  correct(database_now: number): void {
    if (Math.abs(database_now - this.now()) < MIN_CORRECTION_MS) return;
    // Whole milliseconds, because the database's time is more precise than the rows it stores.
    const offset = Math.round(database_now - this.#own.now());
    this.#offset = Math.abs(offset) < MIN_CORRECTION_MS ? 0 : offset;
    const seconds = Math.round(-offset / 1000);
    log("cluster").warn("this machine's clock is {seconds} s ahead of the database's, which is used", { seconds });
  }
}
