// The store of a node that answers reads and writes nothing: another node is the active one. What that one writes it hears of a moment later:
// enough for streams, and not for answers, so it has no version but the audit log's, and no answer is kept here.
import type { Clock } from "#base/clock.ts";
import type { Store } from "../engine/store.ts";
import { Listener } from "./listener.ts";
import type { Notice, Word } from "./notice.ts";
import type { Primary } from "./primary.ts";
import { PgReads } from "./reads.ts";

export class ReadStore extends PgReads implements Store {
  /** That of no node: nothing is written with it. */
  readonly epoch = 0;
  /** Undefined until something is heard of the active node. */
  auditVersion: number | undefined;
  readonly #refuse: () => never;
  #listener: Listener | undefined;

  /** `refuse` throws what a write is answered with. */
  constructor(primary: Primary, refuse: () => never) {
    super(primary);
    this.#refuse = refuse;
  }

  /** From now on what the active node tells is heard. `tell` gets its words, and is called without any where some may have been missed. */
  listen(clock: Clock, tell: (words: readonly Word[] | undefined) => void): void {
    const hear = ({ audit, words = [], all }: Notice): void => {
      if (audit || all) this.auditVersion = (this.auditVersion ?? 0) + 1;
      if (all || words.length > 0) tell(all ? undefined : words);
    };
    this.#listener = new Listener({ primary: this.primary, clock, hear });
  }

  async commit(): Promise<void> {
    this.#refuse();
  }

  async reserve(): Promise<number> {
    return this.#refuse();
  }

  async close(): Promise<void> {
    this.endReads();
    await this.#listener?.close();
    await this.primary.close();
  }
}
