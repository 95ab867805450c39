// Shards that a test moves between contexts by hand, as the shard table does between nodes.
import { PARTS, type Parts } from "#base/parts.ts";

export class MovableParts implements Parts {
  readonly #own: Set<number>;
  comings = 0;

  constructor(own: Iterable<number> = Array.from({ length: PARTS }, (_, part) => part)) {
    this.#own = new Set(own);
  }

  has(part: number): boolean {
    return this.#own.has(part);
  }

  get isFirst(): boolean {
    return this.has(0);
  }

  nodeOf(): undefined {}

  add(parts: readonly number[]): void {
    for (const part of parts) this.#own.add(part);
    this.comings++;
  }

  drop(parts: readonly number[]): void {
    for (const part of parts) this.#own.delete(part);
  }
}
