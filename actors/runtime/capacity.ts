// Slots for running chats (facts/chats 1.12): so many turns at once, roots and sub-chats apart, so that a parent that waits for its
// child cannot take the child's slot. Anyone who gets none waits: a slot that is free goes to the owner who has the fewest, then to the one
// whose last one is longest ago, so that one owner's chats never lock out another's. An owner without a slot for a while gets an extra one, because a turn can keep its slot for hours, as the
// turn of a coding agent does. Nothing of this is stored.
import type { Clock, Timer } from "#base/clock.ts";

export type Pool = "root" | "child";

/** Whose slot it is: a chat and its owner. */
export type Claimant = { readonly id: string; readonly owner_id: string };

type Waiting = Claimant & { readonly run: () => void; patience?: Timer };

/** After this long an owner without any slot gets one on top. */
const PATIENCE_MS = 20_000;

export class Capacity {
  readonly #pools: Readonly<Record<Pool, SharedSlots>>;

  constructor(slots: Readonly<Record<Pool, number>>, clock: Clock) {
    this.#pools = { root: new SharedSlots(slots.root, clock), child: new SharedSlots(slots.child, clock) };
  }

  /** Calls `run` once there is a slot, at once when one is free. Returns how to give it back, or to stop waiting; harmless twice. */
  request(pool: Pool, of: Claimant, run: () => void): () => void {
    return this.#pools[pool].request({ ...of, run });
  }

  /** True while someone waits who has less than this owner: what has a slot for long should let others have it for a while. */
  isOwed(pool: Pool, owner_id: string): boolean {
    return this.#pools[pool].isOwed(owner_id);
  }

  /** True while the chat waits for a slot. */
  isWaiting(id: string): boolean {
    return Object.values(this.#pools).some((pool) => pool.waiting.some((one) => one.id === id));
  }

  /** How many wait, of all pools. */
  get waiting(): number {
    return Object.values(this.#pools).reduce((sum, pool) => sum + pool.waiting.length, 0);
  }
}

class SharedSlots {
  /** In the order they came. */
  readonly waiting: Waiting[] = [];
  /** Below zero while owners have slots on top. */
  #free: number;
  readonly #slots: number;
  readonly #clock: Clock;
  /** Slots that an owner has now, and when one was given last, counted in slots; of those that have or want one. */
  readonly #owners = new Map<string, { held: number; served: number }>();
  #given = 0;

  constructor(slots: number, clock: Clock) {
    this.#free = slots;
    this.#slots = slots;
    this.#clock = clock;
  }

  request(waiting: Waiting): () => void {
    const { owner_id } = waiting;
    let isDone = false;
    if (!this.#owners.has(owner_id)) this.#owners.set(owner_id, { held: 0, served: 0 });
    this.waiting.push(waiting);
    this.#fill();
    this.#grantOnTop(waiting);
    return () => {
      if (isDone) return;
      isDone = true;
      waiting.patience?.cancel();
      const at = this.waiting.indexOf(waiting);
      if (at >= 0) this.waiting.splice(at, 1);
      else {
        this.#free += 1;
        this.#of(owner_id).held -= 1;
      }
      this.#fill();
      const isGone = this.#of(owner_id).held === 0 && !this.waiting.some((one) => one.owner_id === owner_id);
      if (isGone) this.#owners.delete(owner_id);
    };
  }

  /** Someone has none while this owner has one, or would still have no more than this owner after a change. */
  isOwed(owner_id: string): boolean {
    const { held } = this.#of(owner_id);
    return this.waiting.some((one) => {
      const theirs = this.#of(one.owner_id).held;
      return one.owner_id !== owner_id && held > 0 && (theirs === 0 || theirs + 1 < held);
    });
  }

  #fill(): void {
    while (this.#free > 0 && this.waiting.length > 0) {
      const next = this.waiting.reduce((best, one) => (this.#isBefore(one, best) ? one : best));
      this.#give(next);
    }
  }

  #give(next: Waiting): void {
    next.patience?.cancel();
    this.waiting.splice(this.waiting.indexOf(next), 1);
    this.#free -= 1;
    const owner = this.#of(next.owner_id);
    owner.held += 1;
    owner.served = ++this.#given;
    next.run();
  }

  /** Gives a slot on top to someone who has waited long and has none. There are never more of these than there are slots. */
  #grantOnTop(waiting: Waiting): void {
    if (!this.waiting.includes(waiting)) return;
    waiting.patience = this.#clock.after(PATIENCE_MS, () => {
      if (this.#of(waiting.owner_id).held === 0 && this.#free > -this.#slots) this.#give(waiting);
      else this.#grantOnTop(waiting);
    });
  }

  /** Only where it is strictly so: of two of one owner the first comes first. */
  #isBefore(one: Waiting, other: Waiting): boolean {
    const [a, b] = [this.#of(one.owner_id), this.#of(other.owner_id)];
    return a.held === b.held ? a.served < b.served : a.held < b.held;
  }

  #of(owner_id: string): { held: number; served: number } {
    return this.#owners.get(owner_id) ?? { held: 0, served: 0 };
  }
}
