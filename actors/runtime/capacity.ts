// Slots for running chats (facts/chats 1.12): so many turns at once, roots and sub-chats apart, so that a parent that waits for its
// child cannot take the child's slot. Whoever gets none waits in order; nothing of this is stored.

export type Pool = "root" | "child";

type Waiting = { readonly id: string; readonly run: () => void };

export class Capacity {
  readonly #free: Record<Pool, number>;
  readonly #waiting: Record<Pool, Waiting[]> = { root: [], child: [] };

  constructor(slots: Readonly<Record<Pool, number>>) {
    this.#free = { ...slots };
  }

  /** Calls `run` once there is a slot, at once when one is free. Returns how to give it back, or to stop waiting; harmless twice. */
  request(pool: Pool, id: string, run: () => void): () => void {
    const waiting: Waiting = { id, run };
    let isDone = false;
    this.#waiting[pool].push(waiting);
    this.#fill(pool);
    return () => {
      if (isDone) return;
      isDone = true;
      const at = this.#waiting[pool].indexOf(waiting);
      if (at >= 0) this.#waiting[pool].splice(at, 1);
      else this.#free[pool] += 1;
      this.#fill(pool);
    };
  }

  /** True while the chat waits for a slot. */
  isWaiting(id: string): boolean {
    return Object.values(this.#waiting).some((pool) => pool.some((one) => one.id === id));
  }

  /** How many wait, of all pools. */
  get waiting(): number {
    return Object.values(this.#waiting).reduce((sum, pool) => sum + pool.length, 0);
  }

  #fill(pool: Pool): void {
    while (this.#free[pool] > 0) {
      const next = this.#waiting[pool].shift();
      if (!next) return;
      this.#free[pool] -= 1;
      next.run();
    }
  }
}
