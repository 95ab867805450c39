// Numbers that ascend and are never used twice, handed out from blocks that are reserved on disk first. What a crash leaves of a
// block is skipped (PERFORMANCE section 3, rule 4). Several nodes take their blocks from one row: anyone who loses the race for one takes the next.
import { sql } from "drizzle-orm";
import { sequences } from "../schema/core.ts";
import { build, findBy, insertInto, type Statement, statement } from "./sql.ts";
import { CommitError, type SequenceName, type Store } from "./store.ts";

/** Numbers reserved at a time: at 400,000 log lines a second this is ten small writes a second. */
const BLOCK = 40_000;

const findSequence = findBy(sequences, sequences.name);
const begin = insertInto(sequences);
const advance = statement<{ name: string; from: number; to: number }>(
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

  /** The first of `count` consecutive numbers. Waits for the disk only when the block at hand is used up. */
  async reserve(name: SequenceName, count: number): Promise<number> {
    if (!Number.isInteger(count) || count < 1) throw new RangeError(`cannot reserve ${count} numbers`);
    for (;;) {
      const block = this.#blocks.get(name);
      if (block && block.next + count <= block.end) {
        const first = block.next;
        block.next += count;
        return first;
      }
      await this.#refill(name, Math.max(BLOCK, count));
    }
  }

  /**
   * Gives up the rest of every block: what is reserved from now on is above all that any node has had. For who continues with the actors of
   * another node, whose blocks may be above those at hand.
   */
  giveUp(): void {
    this.#blocks.clear();
    // Also those that are on their way, which may have been taken before the other node's.
    this.#refilling.clear();
  }

  #refill(name: SequenceName, size: number): Promise<void> {
    let running = this.#refilling.get(name);
    if (!running) {
      const made = this.#load(name, size)
        .then((block) => {
          if (this.#refilling.get(name) === made) this.#blocks.set(name, block);
        })
        .finally(() => {
          if (this.#refilling.get(name) === made) this.#refilling.delete(name);
        });
      running = made;
      this.#refilling.set(name, running);
    }
    return running;
  }

  async #load(name: SequenceName, size: number): Promise<Block> {
    for (;;) {
      const row = await this.#store.get(findSequence({ name }));
      const next = row?.next ?? 1;
      const begun = row || (await this.#isMine([begin({ name, next })]));
      if (begun && (await this.#isMine([advance({ name, from: next, to: next + size })]))) {
        return { next, end: next + size };
      }
    }
  }

  /** False: another node was first. */
  async #isMine(batch: readonly Statement[]): Promise<boolean> {
    try {
      await this.#store.commit(batch);
      return true;
    } catch (error) {
      if (error instanceof CommitError && (error.reason === "stale" || error.reason === "constraint")) return false;
      throw error;
    }
  }
}
