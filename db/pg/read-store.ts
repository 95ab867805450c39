// The store of a node that answers reads and writes nothing: another node is the active one. It has no versions, since it does not hear of
// writes: nothing that is kept by them is kept here.
import type { Store } from "../engine/store.ts";
import type { Primary } from "./primary.ts";
import { PgReads } from "./reads.ts";

export class ReadStore extends PgReads implements Store {
  /** That of no node: nothing is written with it. */
  readonly epoch = 0;
  readonly #refuse: () => never;

  /** `refuse` throws what a write is answered with. */
  constructor(primary: Primary, refuse: () => never) {
    super(primary);
    this.#refuse = refuse;
  }

  async commit(): Promise<void> {
    this.#refuse();
  }

  async reserve(): Promise<number> {
    return this.#refuse();
  }

  async close(): Promise<void> {
    this.endReads();
    await this.primary.close();
  }
}
