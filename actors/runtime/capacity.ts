// Slots for running turns (facts/chats 1.12). Roots and sub-chats have separate pools, so that a parent that waits for its child cannot
// take the child's slot. A free slot goes to the waiting owner with the fewest slots; among these, to the owner who got a slot longest
// ago. So the chats of one owner never lock out those of another. An owner who has waited without any slot gets an extra one, because a
// turn, such as a coding
// agent's, can hold its slot for hours. Nothing is stored.
import type { Clock, Timer } from "#base/clock.ts";

export type Pool = "root" | "child";

/** The chat that requests a slot, and its owner. */
export type Claimant = { readonly id: string; readonly owner_id: string };

type Waiting = Claimant & { readonly run: () => void; extraSlotTimer?: Timer };

/** After this long, an owner without any slot gets an extra one. */
const EXTRA_SLOT_DELAY_MS = 20_000;

export class Capacity {
  readonly #pools: Readonly<Record<Pool, SharedSlots>>;

  constructor(slots: Readonly<Record<Pool, number>>, clock: Clock) {
    this.#pools = { root: new SharedSlots(slots.root, clock), child: new SharedSlots(slots.child, clock) };
  }

  /** Calls `run` once a slot is free, which may be immediately. Returns a function that releases the slot or stops waiting. Idempotent. */
  request(pool: Pool, claimant: Claimant, run: () => void): () => void {
    return this.#pools[pool].request({ ...claimant, run });
  }

  /** Returns whether an owner with fewer slots waits. Long turns should then yield their slot for some time. */
  isOwed(pool: Pool, owner_id: string): boolean {
    return this.#pools[pool].isOwed(owner_id);
  }

  /** Returns whether the chat waits for a slot. */
  isWaiting(id: string): boolean {
    return Object.values(this.#pools).some((pool) => pool.waiting.some((one) => one.id === id));
  }

  /** Number of waiting requests in all pools. */
  get waiting(): number {
    return Object.values(this.#pools).reduce((sum, pool) => sum + pool.waiting.length, 0);
  }
}

class SharedSlots {
  /** The waiting requests in order of arrival. */
  readonly waiting: Waiting[] = [];
  /** The number of free slots. Negative while owners have extra slots. */
  #free: number;
  readonly #slots: number;
  readonly #clock: Clock;
  /**
   * The number of slots that each owner holds, and the sequence number of the last one granted. Contains only owners that hold or request
   * a slot.
   */
  readonly #owners = new Map<string, { held: number; served: number }>();
  #grants = 0;

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
    this.#grantFree();
    this.#scheduleExtraSlot(waiting);
    return () => {
      if (isDone) return;
      isDone = true;
      waiting.extraSlotTimer?.cancel();
      const index = this.waiting.indexOf(waiting);
      if (index >= 0) this.waiting.splice(index, 1);
      else {
        this.#free += 1;
        this.#getOwner(owner_id).held -= 1;
      }
      this.#grantFree();
      const isIdle = this.#getOwner(owner_id).held === 0 && !this.waiting.some((one) => one.owner_id === owner_id);
      if (isIdle) this.#owners.delete(owner_id);
    };
  }

  /**
   * Returns whether a slot of this owner should go to a waiting owner: one who has none, or who would still have fewer than this owner
   * with one more.
   */
  isOwed(owner_id: string): boolean {
    const { held } = this.#getOwner(owner_id);
    return this.waiting.some((one) => {
      const otherHeld = this.#getOwner(one.owner_id).held;
      return one.owner_id !== owner_id && held > 0 && (otherHeld === 0 || otherHeld + 1 < held);
    });
  }

  #grantFree(): void {
    while (this.#free > 0 && this.waiting.length > 0) {
      const next = this.waiting.reduce((best, one) => (this.#isBefore(one, best) ? one : best));
      this.#grant(next);
    }
  }

  #grant(next: Waiting): void {
    next.extraSlotTimer?.cancel();
    this.waiting.splice(this.waiting.indexOf(next), 1);
    this.#free -= 1;
    const owner = this.#getOwner(next.owner_id);
    owner.held += 1;
    owner.served = ++this.#grants;
    next.run();
  }

  /** Grants an extra slot to an owner who has waited too long without any slot. There are never more extra slots than regular ones. */
  #scheduleExtraSlot(waiting: Waiting): void {
    if (!this.waiting.includes(waiting)) return;
    waiting.extraSlotTimer = this.#clock.after(EXTRA_SLOT_DELAY_MS, () => {
      if (this.#getOwner(waiting.owner_id).held === 0 && this.#free > -this.#slots) this.#grant(waiting);
      else this.#scheduleExtraSlot(waiting);
    });
  }

  /** Returns true only for a strict order: requests of one owner keep their order of arrival. */
  #isBefore(one: Waiting, other: Waiting): boolean {
    const [a, b] = [this.#getOwner(one.owner_id), this.#getOwner(other.owner_id)];
    return a.held === b.held ? a.served < b.served : a.held < b.held;
  }

  #getOwner(owner_id: string): { held: number; served: number } {
    return this.#owners.get(owner_id) ?? { held: 0, served: 0 };
  }
}
