// Tracks which shards this node owns according to the table, and runs the handlers when they come and go.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { FIRST_PART, type OtherNode, PARTS, type Parts } from "#base/parts.ts";
import { finishesWithin, pause } from "#base/retry.ts";
import type { Holder } from "./moves.ts";
import type { PartsTable } from "./table.ts";

/** Handlers for shards that come to this node or leave it. */
export type PartsHandler = {
  /** Takes over the open work of shards that now belong to this node. Called again after a second when it rejects. */
  adopt(parts: readonly number[]): Promise<void>;
  /**
   * Releases shards that no longer belong to this node. Resolves when none of their work is in memory or running, so that another node can
   * get them.
   */
  releaseParts(parts: readonly number[]): Promise<void>;
};

type Options = {
  readonly holder: Holder;
  readonly clock: Clock;
  /** Called before this node owns shards that another node may have had. */
  beforeCome(): void;
};

/** Shards that the handler was asked to release. */
export type Leaving = {
  readonly parts: readonly number[];
  /** Whether the handler has released all of them. */
  readonly isDone: boolean;
  /** Resolves when the handler has finished, successfully or not. */
  readonly over: Promise<void>;
};

const ADOPT_RETRY_MS = 1000;

export class Possession implements Parts {
  readonly #options: Options;
  readonly #own = new Set<number>();
  /** Shards on their way to another node, and shards that `adopt` has not finished. */
  readonly #leaving = new Set<number>();
  readonly #adopting = new Set<number>();
  #tableParts: ReadonlySet<number> = new Set();
  #others: (OtherNode | undefined)[] = [];
  #handler: PartsHandler | undefined;
  #isResting = false;
  #comings = 0;

  constructor(options: Options) {
    this.#options = options;
  }

  has(part: number): boolean {
    return this.#own.has(part);
  }

  get isFirst(): boolean {
    return this.#own.has(FIRST_PART);
  }

  get comings(): number {
    return this.#comings;
  }

  get count(): number {
    return this.#own.size;
  }

  nodeOf(part: number): OtherNode | undefined {
    return this.#others[part];
  }

  /** Returns whether the shard can be released. */
  canRelease(part: number): boolean {
    return this.#handler !== undefined && !this.#isResting && this.#own.has(part) && !this.#adopting.has(part);
  }

  onMoves(handler: PartsHandler): void {
    this.#handler = handler;
    if (this.#own.size > 0) this.#adopt([...this.#own]);
  }

  /** Ignores new shards from now on. */
  pauseAdopting(): void {
    this.#isResting = true;
  }

  /** Drops all shards. */
  dropAll(): void {
    this.#isResting = true;
    this.#own.clear();
  }

  /** Applies the table of shards. */
  applyTable({ owners }: PartsTable): void {
    const { node, epoch } = this.#options.holder;
    const before = this.count;
    this.#others = new Array(PARTS).fill(undefined);
    this.#tableParts = new Set();
    for (const { id, address, epoch: of, lives, parts } of owners) {
      if (id === node && of === epoch) this.#tableParts = new Set(parts);
      else if (lives) for (const part of parts) this.#others[part] = { id, address };
    }
    const gone = [...this.#own].filter((part) => !this.#tableParts.has(part));
    if (gone.length > 0) this.#onLost(gone);
    const come = [...this.#tableParts].filter((part) => !this.#own.has(part) && !this.#leaving.has(part));
    if (come.length > 0 && !this.#isResting) this.#onArrived(come);
    if (this.count !== before) this.#logCount();
  }

  /** Asks the handler to release these shards, which no longer count as owned; `settle` determines the result. */
  async releaseParts(parts: readonly number[], ms: number): Promise<Leaving> {
    for (const part of parts) {
      this.#own.delete(part);
      this.#leaving.add(part);
    }
    let isDone = false;
    const over = (async () => {
      await this.#handler?.releaseParts(parts);
      isDone = true;
    })().catch((error) => log("cluster").error("parts could not be left: {error}", { error }));
    const values = { count: parts.length, seconds: ms / 1000 };
    if (!(await finishesWithin(this.#options.clock, ms, over))) {
      log("cluster").error("{count} parts were not left within {seconds} s: they stay here", values);
    }
    return { parts, isDone, over };
  }

  /**
   * Called after the next check. Returns true when all shards have moved. Others are owned again, and adopted once the handler has released
   * them.
   */
  settle({ parts, over }: Leaving): boolean {
    for (const part of parts) this.#leaving.delete(part);
    const kept = parts.filter((part) => this.#tableParts.has(part));
    for (const part of kept) this.#own.add(part);
    if (kept.length > 0) this.#adopt(kept, over);
    this.#logCount();
    return kept.length === 0;
  }

  #onArrived(parts: readonly number[]): void {
    this.#options.beforeCome();
    this.#comings++;
    for (const part of parts) this.#own.add(part);
    if (this.#handler) this.#adopt(parts);
  }

  /**
   * Handles shards that were taken away without a handover, by an operator or because this node was too late. Its batches for them are
   * already rejected.
   */
  #onLost(parts: readonly number[]): void {
    log("cluster").warn("{count} parts are another node's now, which this one has not given", { count: parts.length });
    for (const part of parts) this.#own.delete(part);
    void Promise.resolve(this.#handler?.releaseParts(parts)).catch((error) => {
      log("cluster").error("parts could not be left: {error}", { error });
    });
  }

  #adopt(parts: readonly number[], after: Promise<void> = Promise.resolve()): void {
    for (const part of parts) this.#adopting.add(part);
    void after
      .then(() => this.#adoptWithRetries(parts))
      .finally(() => {
        for (const part of parts) this.#adopting.delete(part);
      });
  }

  async #adoptWithRetries(parts: readonly number[]): Promise<void> {
    for (;;) {
      const own = parts.filter((part) => this.#own.has(part));
      if (own.length === 0 || this.#isResting) return;
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
    log("cluster").info("node {node} has {count} of {all} parts", { node, count: this.count, all: PARTS });
  }
}
