// The clock of a cluster node: its machine's clock, corrected by the database's clock when they differ. Nodes compare each other's
// timestamps, so their clocks must agree.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";

/** Smaller differences are ignored: machines with synchronized clocks differ by less. */
const MIN_CORRECTION_MS = 1_000;

export class DatabaseClock implements Clock {
  readonly #own: Clock;
  #offset_ms = 0;

  constructor(own: Clock) {
    this.#own = own;
  }

  now(): number {
    return this.#own.now() + this.#offset_ms;
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

  /** Corrects the clock with the database's time, in milliseconds since 1970. */
  correct(databaseNow: number): void {
    if (Math.abs(databaseNow - this.now()) < MIN_CORRECTION_MS) return;
    // Whole milliseconds, because the database's time is more precise than the rows it stores.
    const offset_ms = Math.round(databaseNow - this.#own.now());
    this.#offset_ms = Math.abs(offset_ms) < MIN_CORRECTION_MS ? 0 : offset_ms;
    const seconds = Math.round(-offset_ms / 1000);
    log("cluster").warn("this machine's clock is {seconds} s ahead of the database's, which is used", { seconds });
  }
}
