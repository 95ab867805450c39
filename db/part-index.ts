// Caches the shard of each requested ID, which never changes. Bounded; keeps the most recently used.
import type { Store } from "./engine/store.ts";
import { findPart, type Parted } from "./part-of.ts";

const MOST = 100_000;

export class PartIndex {
  readonly #store: Pick<Store, "get">;
  readonly #known = new Map<string, number>();

  constructor(store: Pick<Store, "get">) {
    this.#store = store;
  }

  /** Returns undefined if the entity does not exist. Returns a promise only if the shard must be looked up. */
  of(kind: Parted, id: string): number | undefined | Promise<number | undefined> {
    return this.#known.get(`${kind} ${id}`) ?? this.#look(kind, id);
  }

  /** Records the shard of an entity about to be created, which cannot be found yet. */
  note(kind: Parted, id: string, part: number): void {
    const key = `${kind} ${id}`;
    this.#known.delete(key);
    this.#known.set(key, part);
    if (this.#known.size <= MOST) return;
    const [oldest = ""] = this.#known.keys();
    this.#known.delete(oldest);
  }

  async #look(kind: Parted, id: string): Promise<number | undefined> {
    const part = await findPart(this.#store, kind, id);
    if (part !== undefined) this.note(kind, id, part);
    return part;
  }
}
