// Schedules limited slots fairly: each person has one slot at a time, and the person who was served longest ago comes first. So one
// person's backlog does not delay others. Among one person's workspaces, the one served longest ago comes first.

/** Maximum remembered entries. Anything older counts as never served. */
const MAX_REMEMBERED = 2_000;

type Waiting = { readonly owner_id: string; readonly workspace_id: string };

export class Turns {
  readonly #busy = new Set<string>();
  /** People and workspaces, most recently served last. */
  readonly #lastServed = new Map<string, number>();
  #count = 0;

  /** Returns the items that may have a slot now, in order of priority. Ties keep the given order. */
  order<T extends Waiting>(waiting: readonly T[]): T[] {
    const rank = (id: string): number => this.#lastServed.get(id) ?? 0;
    return waiting
      .filter(({ owner_id }) => !this.#busy.has(owner_id))
      .toSorted((a, b) => rank(a.owner_id) - rank(b.owner_id) || rank(a.workspace_id) - rank(b.workspace_id));
  }

  isBusy(owner_id: string): boolean {
    return this.#busy.has(owner_id);
  }

  begin({ owner_id, workspace_id }: Waiting): void {
    this.#busy.add(owner_id);
    this.#count += 1;
    for (const id of [workspace_id, owner_id]) {
      this.#lastServed.delete(id);
      this.#lastServed.set(id, this.#count);
    }
    for (const id of this.#lastServed.keys()) {
      if (this.#lastServed.size <= MAX_REMEMBERED) break;
      this.#lastServed.delete(id);
    }
  }

  end({ owner_id }: Waiting): void {
    this.#busy.delete(owner_id);
  }
}
