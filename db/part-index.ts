// Caches the shard of each requested ID, which never changes. Bounded; keeps the most recently used.
import type { Store } from "./engine/store.ts";
import { findPart, type PartedKind } from "./find-shard.ts";

const MAX_CACHED = 100_000;

export class PartIndex {
  readonly #store: Pick<Store, "get">;
  readonly #cache = new Map<string, number>();

  constructor(store: Pick<Store, "get">) {
    this.#store = store;
  }

  /** Returns undefined if the entity does not exist. Returns a promise only if the shard must be looked up. */
  findPartOf(kind: PartedKind, id: string): number | undefined | Promise<number | undefined> {
    return this.#cache.get(`${kind} ${id}`) ?? this.#loadPart(kind, id);
  }

  /** Records the shard of an entity about to be created, which cannot be found yet. */
  note(kind: PartedKind, id: string, part: number): void {
    const key = `${kind} ${id}`;
    this.#cache.delete(key);
    this.#cache.set(key, part);
    if (this.#cache.size <= MAX_CACHED) return;
    const [oldest = ""] = this.#cache.keys();
    this.#cache.delete(oldest);
  }

  async #loadPart(kind: PartedKind, id: string): Promise<number | undefined> {
    const part = await findPart(this.#store, kind, id);
    if (part !== undefined) this.note(kind, id, part);
    return part;
  }
}
