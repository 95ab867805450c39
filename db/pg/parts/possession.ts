// Which parts this node has, as the table of parts says it, and what has to be done where they come and go.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { FIRST_PART, type OtherNode, PARTS, type Parts } from "#base/parts.ts";
import { pause, within } from "#base/retry.ts";
import type { Holder } from "./moves.ts";
import type { PartsTable } from "./table.ts";

/** What is done where parts come to this node and go from it. */
export type PartsHandler = {
  /** They count as had from now on: what is open in them no longer exists on with. Called again after a second when it rejects. */
  adopt(parts: readonly number[]): Promise<void>;
  /** They count as not had from now on. Resolves when nothing of them is in memory or under way: then another node gets them. */
  leave(parts: readonly number[]): Promise<void>;
};

type Options = {
  readonly holder: Holder;
  readonly clock: Clock;
  /** Called before parts count as had that another node may have had. */
  beforeCome(): void;
};

/** Parts that the handler was asked to release. */
export type Leaving = {
  readonly parts: readonly number[];
  /** Whether nothing of them is here any more. */
  readonly isDone: boolean;
  /** Resolves when the handler has done with them in any way. */
  readonly over: Promise<void>;
};

const AGAIN_MS = 1000;

export class Possession implements Parts {
  readonly #options: Options;
  readonly #own = new Set<number>();
  /** Those that are on their way to another node, and those that `adopt` has not done yet. */
  readonly #leaving = new Set<number>();
  readonly #adopting = new Set<number>();
  #mine: ReadonlySet<number> = new Set();
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

  /** Whether it can be asked to go. */
  mayLeave(part: number): boolean {
    return this.#handler !== undefined && !this.#isResting && this.#own.has(part) && !this.#adopting.has(part);
  }

  onMoves(handler: PartsHandler): void {
    this.#handler = handler;
    if (this.#own.size > 0) this.#adopt([...this.#own]);
  }

  /** From now on nothing comes that would count as had. */
  rest(): void {
    this.#isResting = true;
  }

  /** Has nothing from now on. */
  giveAll(): void {
    this.#isResting = true;
    this.#own.clear();
  }

  /** What the table says is so from now on. */
  see({ owners }: PartsTable): void {
    const { node, epoch } = this.#options.holder;
    const before = this.count;
    this.#others = new Array(PARTS).fill(undefined);
    this.#mine = new Set();
    for (const { id, address, epoch: of, lives, parts } of owners) {
      if (id === node && of === epoch) this.#mine = new Set(parts);
      else if (lives) for (const part of parts) this.#others[part] = { id, address };
    }
    const gone = [...this.#own].filter((part) => !this.#mine.has(part));
    if (gone.length > 0) this.#lose(gone);
    const come = [...this.#mine].filter((part) => !this.#own.has(part) && !this.#leaving.has(part));
    if (come.length > 0 && !this.#isResting) this.#come(come);
    if (this.count !== before) this.#say();
  }

  /** Asks the handler to release these parts, which count as not had from now on; `settle` tells what has become of them. */
  async leave(parts: readonly number[], ms: number): Promise<Leaving> {
    for (const part of parts) {
      this.#own.delete(part);
      this.#leaving.add(part);
    }
    let isDone = false;
    const over = (async () => {
      await this.#handler?.leave(parts);
      isDone = true;
    })().catch((error) => log("cluster").error("parts could not be left: {error}", { error }));
    const values = { count: parts.length, seconds: ms / 1000 };
    if (!(await within(this.#options.clock, ms, over))) {
      log("cluster").error("{count} parts were not left within {seconds} s: they stay here", values);
    }
    return { parts, isDone, over };
  }

  /** After a look: true when all have gone. What has not is had again, and gone on with once the handler has release it. */
  settle({ parts, over }: Leaving): boolean {
    for (const part of parts) this.#leaving.delete(part);
    const kept = parts.filter((part) => this.#mine.has(part));
    for (const part of kept) this.#own.add(part);
    if (kept.length > 0) this.#adopt(kept, over);
    this.#say();
    return kept.length === 0;
  }

  #come(parts: readonly number[]): void {
    this.#options.beforeCome();
    this.#comings++;
    for (const part of parts) this.#own.add(part);
    if (this.#handler) this.#adopt(parts);
  }

  /** Without having given them: another has them by the hand of an operator, or this node was too late. Its batches of them are refused already. */
  #lose(parts: readonly number[]): void {
    log("cluster").warn("{count} parts are another node's now, which this one has not given", { count: parts.length });
    for (const part of parts) this.#own.delete(part);
    void Promise.resolve(this.#handler?.leave(parts)).catch((error) => {
      log("cluster").error("parts could not be left: {error}", { error });
    });
  }

  #adopt(parts: readonly number[], after: Promise<void> = Promise.resolve()): void {
    for (const part of parts) this.#adopting.add(part);
    void after
      .then(() => this.#adoptAll(parts))
      .finally(() => {
        for (const part of parts) this.#adopting.delete(part);
      });
  }

  async #adoptAll(parts: readonly number[]): Promise<void> {
    for (;;) {
      const own = parts.filter((part) => this.#own.has(part));
      if (own.length === 0 || this.#isResting) return;
      try {
        return await this.#handler?.adopt(own);
      } catch (error) {
        log("cluster").error("what was open in {count} parts could not be gone on with: {error}", {
          count: own.length,
          error,
        });
      }
      await pause(this.#options.clock, AGAIN_MS);
    }
  }

  #say(): void {
    const { node } = this.#options.holder;
    log("cluster").info("node {node} has {count} of {all} parts", { node, count: this.count, all: PARTS });
  }
}
