// Limits the number of concurrent dispatches. User prompts may use only a part of the slots, so that some remain for running turns. A
// dispatch waits briefly for a slot, in order of arrival.
import type { Clock } from "#base/clock.ts";

export type Pool = "prompt" | "turn";
export type SlotLimits = { readonly all: number; readonly prompts: number; readonly wait_ms: number };

/** Maximum number of concurrent dispatches, and the wait for a slot (facts/agents A33). */
export const DEFAULT_LIMITS: SlotLimits = { all: 256, prompts: 192, wait_ms: 250 };

type Waiter = { readonly pool: Pool; readonly acquire: () => void };

export class Slots {
  readonly #clock: Clock;
  readonly #limits: SlotLimits;
  readonly #used: Record<Pool, number> = { prompt: 0, turn: 0 };
  readonly #waiters = new Set<Waiter>();

  constructor(clock: Clock, limits: SlotLimits = DEFAULT_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Returns a function that releases the slot; undefined if no slot became free in time. */
  acquire(pool: Pool): Promise<(() => void) | undefined> {
    if (this.#isFree(pool)) return Promise.resolve(this.#reserve(pool));
    return new Promise((resolve) => {
      const waiter: Waiter = {
        pool,
        acquire: () => {
          this.#waiters.delete(waiter);
          timer.cancel();
          resolve(this.#reserve(pool));
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
    return this.#used.prompt + this.#used.turn;
  }

  #isFree(pool: Pool): boolean {
    return this.size < this.#limits.all && (pool === "turn" || this.#used.prompt < this.#limits.prompts);
  }

  #reserve(pool: Pool): () => void {
    this.#used[pool] += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#used[pool] -= 1;
      for (const waiter of [...this.#waiters]) if (this.#isFree(waiter.pool)) waiter.acquire();
    };
  }
}
