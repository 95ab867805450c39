// Ascending numbers that are never used twice, allocated from blocks that are first reserved on disk. A crash skips the remaining numbers
// of a block. Several nodes take blocks from the same row; a node that loses a race takes the next block.
import { sql } from "drizzle-orm";
import { sequences } from "../schema/core.ts";
import { build, findBy, insertInto, type Statement, statement } from "./sql.ts";
import { CommitError, type SequenceName, type Store } from "./store.ts";

/** Numbers reserved at a time: at 400,000 log lines per second this is ten small writes per second. */
const BLOCK_SIZE = 40_000;

const findSequence = findBy(sequences, sequences.name);
const insertSequence = insertInto(sequences);
const advanceSequence = statement<{ name: string; from: number; to: number }>(
  build
    .update(sequences)
    .set({ next: sql`${sql.placeholder("to")}` })
    .where(sql`${sequences.name} = ${sql.placeholder("name")} and ${sequences.next} = ${sql.placeholder("from")}`),
  { expect: 1 },
);

type Block = { next: number; end: number };

export class Sequences {
  readonly #store: Pick<Store, "commit" | "get">;
  readonly #blocks = new Map<SequenceName, Block>();
  readonly #refilling = new Map<SequenceName, Promise<void>>();

  constructor(store: Pick<Store, "commit" | "get">) {
    this.#store = store;
  }

  /** Returns the first of `count` consecutive numbers. Waits for the disk only when the current block is used up. */
  async reserve(name: SequenceName, count: number): Promise<number> {
    if (!Number.isInteger(count) || count < 1) throw new RangeError(`cannot reserve ${count} numbers`);
    for (;;) {
      const block = this.#blocks.get(name);
      if (block && block.next + count <= block.end) {
        const first = block.next;
        block.next += count;
        return first;
      }
      await this.#refill(name, Math.max(BLOCK_SIZE, count));
    }
  }

  /**
   * Discards the remaining numbers of every block, so that later numbers are higher than all that any node has used. Called when actors
   * come from another node, whose blocks may be above the current ones.
   */
  discardBlocks(): void {
    this.#blocks.clear();
    // Also discards pending blocks, which may have been reserved before the other node's.
    this.#refilling.clear();
  }

  #refill(name: SequenceName, size: number): Promise<void> {
    const running = this.#refilling.get(name);
    if (running) return running;
    const started: Promise<void> = this.#load(name, size)
      .then((block) => {
        if (this.#refilling.get(name) === started) this.#blocks.set(name, block);
      })
      .finally(() => {
        if (this.#refilling.get(name) === started) this.#refilling.delete(name);
      });
    this.#refilling.set(name, started);
    return started;
  }

  async #load(name: SequenceName, size: number): Promise<Block> {
    for (;;) {
      const row = await this.#store.get(findSequence({ name }));
      const next = row?.next ?? 1;
      const started = row || (await this.#tryCommit([insertSequence({ name, next })]));
      if (started && (await this.#tryCommit([advanceSequence({ name, from: next, to: next + size })]))) {
        return { next, end: next + size };
      }
    }
  }

  /** Returns false if another node was first. */
  async #tryCommit(batch: readonly Statement[]): Promise<boolean> {
    try {
      await this.#store.commit(batch);
      return true;
    } catch (error) {
      if (error instanceof CommitError && (error.reason === "stale" || error.reason === "constraint")) return false;
      throw error;
    }
  }
}
