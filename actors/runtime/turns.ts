// Whose turn it is where workspaces of many people wait for few places: each person has one place at a time, and the one served longest ago comes
// first, so that no one waits for another person's queue. Of one person it is the workspace served longest ago.

/** What is remembered of who was served; what was before that counts as never served. */
const MAX_REMEMBERED = 2_000;

type Waiting = { readonly owner_id: string; readonly workspace_id: string };

export class Turns {
  readonly #busy = new Set<string>();
  /** People and workspaces, the last served at the end. */
  readonly #served = new Map<string, number>();
  #count = 0;

  /** What may have a place now, in the order in which it gets one; otherwise as given. */
  order<T extends Waiting>(waiting: readonly T[]): T[] {
    const rank = (id: string): number => this.#served.get(id) ?? 0;
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
      this.#served.delete(id);
      this.#served.set(id, this.#count);
    }
    for (const id of this.#served.keys()) {
      if (this.#served.size <= MAX_REMEMBERED) break;
      this.#served.delete(id);
    }
  }

  end({ owner_id }: Waiting): void {
    this.#busy.delete(owner_id);
  }
}
