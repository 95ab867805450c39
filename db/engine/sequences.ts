// Numbers that ascend and are never used twice, handed out from blocks that are reserved on disk first. What a crash leaves of a
// block is skipped (PERFORMANCE section 3, rule 4).
import { sql } from "drizzle-orm";
import { sequences } from "../schema/core.ts";
import { build, findBy, insertInto, statement } from "./sql.ts";
import type { SequenceName, Store } from "./store.ts";

/** Numbers reserved at a time: at 400,000 log lines a second this is ten small writes a second. */
const BLOCK = 40_000;

const nextOf = findBy(sequences, sequences.name);
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

  #refill(name: SequenceName, size: number): Promise<void> {
    let running = this.#refilling.get(name);
    if (!running) {
      running = this.#load(name, size).finally(() => this.#refilling.delete(name));
      this.#refilling.set(name, running);
    }
    return running;
  }

  async #load(name: SequenceName, size: number): Promise<void> {
    const row = await this.#store.get(nextOf({ name }));
    const next = row?.next ?? 1;
    if (!row) await this.#store.commit([begin({ name, next })]);
    await this.#store.commit([advance({ name, from: next, to: next + size })]);
    this.#blocks.set(name, { next, end: next + size });
  }
}
