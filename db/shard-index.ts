// Caches the shard of each requested ID, which never changes. The cache is bounded and keeps the most recently used IDs.
import type { Store } from "./engine/store.ts";
import { findShard, type ShardedKind } from "./find-shard.ts";

const MAX_CACHED = 100_000;

export class ShardIndex {
  readonly #store: Pick<Store, "get">;
  readonly #cache = new Map<string, number>();

  constructor(store: Pick<Store, "get">) {
    this.#store = store;
  }

  /** Returns undefined if the entity does not exist. Returns a promise only if the shard must be looked up. */
  findShardOf(kind: ShardedKind, id: string): number | undefined | Promise<number | undefined> {
    return this.#cache.get(`${kind} ${id}`) ?? this.#loadShard(kind, id);
  }

  /** Records the shard of an entity about to be created, which cannot be found yet. */
  note(kind: ShardedKind, id: string, shard: number): void {
    const key = `${kind} ${id}`;
    this.#cache.delete(key);
    this.#cache.set(key, shard);
    if (this.#cache.size <= MAX_CACHED) return;
    const [oldest = ""] = this.#cache.keys();
    this.#cache.delete(oldest);
  }

  async #loadShard(kind: ShardedKind, id: string): Promise<number | undefined> {
    const shard = await findShard(this.#store, kind, id);
    if (shard !== undefined) this.note(kind, id, shard);
    return shard;
  }
}
