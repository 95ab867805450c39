// Shards that a test moves between contexts by hand, as the shard table does between nodes.
import { SHARD_COUNT, type Shards } from "#base/shards.ts";

export class MovableShards implements Shards {
  readonly #own: Set<number>;
  arrivals = 0;

  constructor(own: Iterable<number> = Array.from({ length: SHARD_COUNT }, (_, shard) => shard)) {
    this.#own = new Set(own);
  }

  has(shard: number): boolean {
    return this.#own.has(shard);
  }

  readonly isHere = (part: number): boolean => this.has(part);

  get isFirst(): boolean {
    return this.has(0);
  }

  nodeOf(): undefined {}

  add(shards: readonly number[]): void {
    for (const shard of shards) this.#own.add(shard);
    this.arrivals++;
  }

  drop(shards: readonly number[]): void {
    for (const shard of shards) this.#own.delete(shard);
  }
}
