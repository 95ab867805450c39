// Tracks which shards this node owns according to the table, and runs the handler when shards arrive or leave.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { finishesWithin, pause } from "#base/retry.ts";
import { FIRST_SHARD, type OtherNode, SHARD_COUNT, type Shards } from "#base/shards.ts";
import type { Holder } from "./moves.ts";
import type { ShardTable } from "./table.ts";

/** Handles shards that arrive at this node or leave it. */
export type ShardsHandler = {
  /** Takes over the open work of shards that now belong to this node. Called again after a second when it rejects. */
  adopt(shards: readonly number[]): Promise<void>;
  /**
   * Releases shards that no longer belong to this node. Resolves when none of their work is in memory or running, so that another node can
   * get them.
   */
  releaseShards(shards: readonly number[]): Promise<void>;
};

type Options = {
  readonly holder: Holder;
  readonly clock: Clock;
  /** Called before this node owns shards that another node may have had. */
  beforeCome(): void;
};

/** Shards that the handler was asked to release. */
export type Leaving = {
  readonly shards: readonly number[];
  /** Whether the handler has released all of them. */
  readonly isDone: boolean;
  /** Resolves when the handler has finished, successfully or not. */
  readonly finished: Promise<void>;
};

const ADOPT_RETRY_MS = 1000;

export class Possession implements Shards {
  readonly #options: Options;
  readonly #own = new Set<number>();
  /** Shards on their way to another node, and shards that `adopt` has not finished. */
  readonly #leaving = new Set<number>();
  readonly #adopting = new Set<number>();
  #tableShards: ReadonlySet<number> = new Set();
  #others: (OtherNode | undefined)[] = [];
  #handler: ShardsHandler | undefined;
  #isPaused = false;
  #arrivals = 0;

  constructor(options: Options) {
    this.#options = options;
  }

  has(shard: number): boolean {
    return this.#own.has(shard);
  }

  get isFirst(): boolean {
    return this.#own.has(FIRST_SHARD);
  }

  get arrivals(): number {
    return this.#arrivals;
  }

  get count(): number {
    return this.#own.size;
  }

  nodeOf(shard: number): OtherNode | undefined {
    return this.#others[shard];
  }

  /** Returns whether the shard can be released. */
  canRelease(shard: number): boolean {
    return this.#handler !== undefined && !this.#isPaused && this.#own.has(shard) && !this.#adopting.has(shard);
  }

  onMoves(handler: ShardsHandler): void {
    this.#handler = handler;
    if (this.#own.size > 0) this.#adopt([...this.#own]);
  }

  /** Ignores new shards from now on. */
  pauseAdopting(): void {
    this.#isPaused = true;
  }

  /** Drops all shards. */
  dropAll(): void {
    this.#isPaused = true;
    this.#own.clear();
  }

  /** Applies the table of shards. */
  applyTable({ owners }: ShardTable): void {
    const { node, epoch } = this.#options.holder;
    const before = this.count;
    this.#others = new Array(SHARD_COUNT).fill(undefined);
    this.#tableShards = new Set();
    for (const { id, address, epoch: ownerEpoch, lives, shards } of owners) {
      if (id === node && ownerEpoch === epoch) this.#tableShards = new Set(shards);
      else if (lives) for (const shard of shards) this.#others[shard] = { id, address };
    }
    const lost = [...this.#own].filter((shard) => !this.#tableShards.has(shard));
    if (lost.length > 0) this.#onLost(lost);
    const arrived = [...this.#tableShards].filter((shard) => !this.#own.has(shard) && !this.#leaving.has(shard));
    if (arrived.length > 0 && !this.#isPaused) this.#onArrived(arrived);
    if (this.count !== before) this.#logCount();
  }

  /** Asks the handler to release these shards, which no longer count as owned; `settle` determines the result. */
  async releaseShards(shards: readonly number[], ms: number): Promise<Leaving> {
    for (const shard of shards) {
      this.#own.delete(shard);
      this.#leaving.add(shard);
    }
    let isDone = false;
    const finished = (async () => {
      await this.#handler?.releaseShards(shards);
      isDone = true;
    })().catch((error) => log("cluster").error("parts could not be left: {error}", { error }));
    const values = { count: shards.length, seconds: ms / 1000 };
    if (!(await finishesWithin(this.#options.clock, ms, finished))) {
      log("cluster").error("{count} parts were not left within {seconds} s: they stay here", values);
    }
    return { shards, isDone, finished };
  }

  /**
   * Called after the next check. Returns true when all shards have moved. Others are owned again, and adopted once the handler has released
   * them.
   */
  settle({ shards, finished }: Leaving): boolean {
    for (const shard of shards) this.#leaving.delete(shard);
    const kept = shards.filter((shard) => this.#tableShards.has(shard));
    for (const shard of kept) this.#own.add(shard);
    if (kept.length > 0) this.#adopt(kept, finished);
    this.#logCount();
    return kept.length === 0;
  }

  #onArrived(shards: readonly number[]): void {
    this.#options.beforeCome();
    this.#arrivals++;
    for (const shard of shards) this.#own.add(shard);
    if (this.#handler) this.#adopt(shards);
  }

  /**
   * Handles shards that were taken away without a handover, by an operator or because this node was too late. Its batches for them are
   * already rejected.
   */
  #onLost(shards: readonly number[]): void {
    log("cluster").warn("{count} parts are another node's now, which this one has not given", { count: shards.length });
    for (const shard of shards) this.#own.delete(shard);
    void Promise.resolve(this.#handler?.releaseShards(shards)).catch((error) => {
      log("cluster").error("parts could not be left: {error}", { error });
    });
  }

  #adopt(shards: readonly number[], after: Promise<void> = Promise.resolve()): void {
    for (const shard of shards) this.#adopting.add(shard);
    void after
      .then(() => this.#adoptWithRetries(shards))
      .finally(() => {
        for (const shard of shards) this.#adopting.delete(shard);
      });
  }

  async #adoptWithRetries(shards: readonly number[]): Promise<void> {
    for (;;) {
      const own = shards.filter((shard) => this.#own.has(shard));
      if (own.length === 0 || this.#isPaused) return;
      try {
        return await this.#handler?.adopt(own);
      } catch (error) {
        log("cluster").error("could not resume the open work of {count} parts: {error}", {
          count: own.length,
          error,
        });
      }
      await pause(this.#options.clock, ADOPT_RETRY_MS);
    }
  }

  #logCount(): void {
    const { node } = this.#options.holder;
    log("cluster").info("node {node} has {count} of {all} parts", { node, count: this.count, all: SHARD_COUNT });
  }
}
