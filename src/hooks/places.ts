// Limits the number of concurrent dispatches. User prompts may use only a part of the slots, so that running turns keep theirs. A dispatch
// waits briefly for a slot, in order of arrival.
import type { Clock } from "#base/clock.ts";

export type Pool = "prompt" | "turn";
export type PlaceLimits = { readonly all: number; readonly prompts: number; readonly wait_ms: number };

/** Maximum number of concurrent dispatches, and the wait for a slot (facts/agents A33). */
export const PLACES: PlaceLimits = { all: 256, prompts: 192, wait_ms: 250 };

type Waiter = { readonly pool: Pool; readonly take: () => void };

export class Places {
  readonly #clock: Clock;
  readonly #limits: PlaceLimits;
  readonly #taken: Record<Pool, number> = { prompt: 0, turn: 0 };
  readonly #waiters = new Set<Waiter>();

  constructor(clock: Clock, limits: PlaceLimits = PLACES) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Returns a function that releases the slot; undefined if none became free in time. */
  take(pool: Pool): Promise<(() => void) | undefined> {
    if (this.#isFree(pool)) return Promise.resolve(this.#taker(pool));
    return new Promise((resolve) => {
      const waiter: Waiter = {
        pool,
        take: () => {
          this.#waiters.delete(waiter);
          timer.cancel();
          resolve(this.#taker(pool));
        },
      };
      const timer = this.#clock.after(this.#limits.wait_ms, () => {
        this.#waiters.delete(waiter);
        resolve(undefined);
      });
      this.#waiters.add(waiter);
    });
  }

  get size(): number {
    return this.#taken.prompt + this.#taken.turn;
  }

  #isFree(pool: Pool): boolean {
    return this.size < this.#limits.all && (pool === "turn" || this.#taken.prompt < this.#limits.prompts);
  }

  #taker(pool: Pool): () => void {
    this.#taken[pool] += 1;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken[pool] -= 1;
      for (const waiter of [...this.#waiters]) if (this.#isFree(waiter.pool)) waiter.take();
    };
  }
}
