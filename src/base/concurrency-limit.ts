// Limits how many tasks run concurrently. Further tasks wait in order, or are started fairly by person. For work that one caller, or many,
// can request at the same time.
import type { Clock } from "./clock.ts";

export class ConcurrencyLimit {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(maxConcurrent: number) {
    this.#free = maxConcurrent;
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
 * Returns the results of a task for each item, in order. At most `maxConcurrent` tasks run together. Rejects with the first error, and
 * starts no task after it.
 */
export const mapConcurrently = async <T, R>(
  maxConcurrent: number,
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
  await Promise.all(Array.from({ length: Math.min(maxConcurrent, items.length) }, runRemaining));
  return results;
};

export type FairLimits = {
  /** Number of slots for everyone. */
  readonly total: number;
  /** Number of slots that one holder can have at the same time. */
  readonly each: number;
  /** Maximum number of requests that wait for a slot, in total and of one holder. */
  readonly waiting: number;
  readonly waiting_each: number;
  /** A request that gets no slot within this time is rejected. */
  readonly wait_ms: number;
};

type Waiter = { readonly holder: string; readonly start: () => void };

/**
 * Limits how much expensive work runs at the same time, for everyone and for each holder, such as a person. Further work waits. A free slot
 * goes to the holder with the fewest slots, or of several, to the one that has waited longest, so that no holder delays the others for
 * long.
 */
export class FairSlots {
  readonly #clock: Clock;
  readonly #limits: FairLimits;
  readonly #slotCounts = new Map<string, number>();
  readonly #waiters: Waiter[] = [];
  #takenCount = 0;

  constructor(clock: Clock, limits: FairLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Returns a function that frees the slot, once; undefined if too many requests wait, or no slot became free in time. */
  async take(holder: string): Promise<(() => void) | undefined> {
    if (this.#hasFreeSlot(holder)) this.#addSlots(holder, 1);
    else if (!(await this.#wait(holder))) return undefined;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#addSlots(holder, -1);
      this.#startNext();
    };
  }

  /** Waits for a slot, and returns whether one became free in time. */
  #wait(holder: string): Promise<boolean> {
    const { waiting, waiting_each, wait_ms } = this.#limits;
    const ownWaiters = this.#waiters.filter((one) => one.holder === holder).length;
    if (this.#waiters.length >= waiting || ownWaiters >= waiting_each) return Promise.resolve(false);
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
    const [first, ...others] = this.#waiters.filter(({ holder }) => this.#hasFreeSlot(holder));
    if (!first) return;
    const next = others.reduce(
      (least, one) => (this.#countSlots(one.holder) < this.#countSlots(least.holder) ? one : least),
      first,
    );
    this.#waiters.splice(this.#waiters.indexOf(next), 1);
    this.#addSlots(next.holder, 1);
    next.start();
  }

  #countSlots(holder: string): number {
    return this.#slotCounts.get(holder) ?? 0;
  }

  #hasFreeSlot(holder: string): boolean {
    return this.#takenCount < this.#limits.total && this.#countSlots(holder) < this.#limits.each;
  }

  #addSlots(holder: string, by: 1 | -1): void {
    this.#takenCount += by;
    const count = this.#countSlots(holder) + by;
    if (count === 0) this.#slotCounts.delete(holder);
    else this.#slotCounts.set(holder, count);
  }
}
