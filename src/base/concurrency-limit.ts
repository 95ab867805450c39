// Limits how many tasks run concurrently; the rest wait in order, or in turns by person. For work that one caller, or many, can request all
// together.
import type { Clock } from "./clock.ts";

export class ConcurrencyLimit {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** `most`: number of tasks that run together. */
  constructor(most: number) {
    this.#free = most;
  }

  /** Runs the task when a slot is free, and returns its result. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await task();
    } finally {
      // A free slot goes to the longest-waiting task.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}

/**
 * Returns the results of a task for each item, in order. At most `most` tasks run together. Rejects with the first error, and starts no
 * task after it.
 */
export const mapConcurrently = async <T, R>(
  most: number,
  items: readonly T[],
  task: (item: T) => Promise<R>,
): Promise<R[]> => {
  const results: R[] = new Array(items.length);
  const remaining = items.entries();
  let hasFailed = false;
  const runRemaining = async (): Promise<void> => {
    for (const [index, item] of remaining) {
      try {
        results[index] = await task(item);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
      if (hasFailed) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, runRemaining));
  return results;
};

export type FairLimits = {
  /** Number of slots for everyone. */
  readonly total: number;
  /** Number of slots that one holder can have at the same time. */
  readonly each: number;
  /** How many can wait for a slot, and how many of these for one holder. */
  readonly waiting: number;
  readonly waiting_each: number;
  /** Holders that get no slot within this time are refused. */
  readonly wait_ms: number;
};

type Waiter = { readonly holder: string; readonly start: () => void };

/**
 * Limits how much expensive work runs at the same time, for everyone and for each holder, such as a person. The rest waits: the holder with the
 * fewest slots comes first, then the one who has waited longest, so that no one delays the others for long.
 */
export class FairSlots {
  readonly #clock: Clock;
  readonly #limits: FairLimits;
  readonly #slotsOf = new Map<string, number>();
  readonly #waiters: Waiter[] = [];
  #busy = 0;

  constructor(clock: Clock, limits: FairLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Returns a function that frees the slot, once; undefined if too many wait, or no slot became free in time. */
  async take(holder: string): Promise<(() => void) | undefined> {
    if (this.#fits(holder)) this.#count(holder, 1);
    else if (!(await this.#wait(holder))) return undefined;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#count(holder, -1);
      this.#startNext();
    };
  }

  /** Waits for a slot, and returns whether it was given one. */
  #wait(holder: string): Promise<boolean> {
    const { waiting, waiting_each, wait_ms } = this.#limits;
    const own = this.#waiters.filter((one) => one.holder === holder).length;
    if (this.#waiters.length >= waiting || own >= waiting_each) return Promise.resolve(false);
    return new Promise((resolve) => {
      const waiter: Waiter = {
        holder,
        start: () => {
          timer.cancel();
          resolve(true);
        },
      };
      const timer = this.#clock.after(wait_ms, () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        resolve(false);
      });
      this.#waiters.push(waiter);
    });
  }

  #startNext(): void {
    const [first, ...others] = this.#waiters.filter(({ holder }) => this.#fits(holder));
    if (!first) return;
    const next = others.reduce((least, one) => (this.#has(one.holder) < this.#has(least.holder) ? one : least), first);
    this.#waiters.splice(this.#waiters.indexOf(next), 1);
    this.#count(next.holder, 1);
    next.start();
  }

  #has(holder: string): number {
    return this.#slotsOf.get(holder) ?? 0;
  }

  #fits(holder: string): boolean {
    return this.#busy < this.#limits.total && this.#has(holder) < this.#limits.each;
  }

  #count(holder: string, by: 1 | -1): void {
    this.#busy += by;
    const has = this.#has(holder) + by;
    if (has === 0) this.#slotsOf.delete(holder);
    else this.#slotsOf.set(holder, has);
  }
}
