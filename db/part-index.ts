// The part of each id that someone has asked for, kept: an id never changes its part. Bounded, the ones asked for last.
import type { Store } from "./engine/store.ts";
import { findPart, type Parted } from "./part-of.ts";

const MOST = 100_000;

export class PartIndex {
  readonly #store: Pick<Store, "get">;
  readonly #known = new Map<string, number>();

  constructor(store: Pick<Store, "get">) {
    this.#store = store;
  }

  /** Undefined where there is no such thing; a promise only where it has to be looked up. */
  of(kind: Parted, id: string): number | undefined | Promise<number | undefined> {
    return this.#known.get(`${kind} ${id}`) ?? this.#look(kind, id);
  }

  /** Something of this part is about to be made: it is asked for before it can be found. */
  note(kind: Parted, id: string, part: number): void {
    const key = `${kind} ${id}`;
    this.#known.delete(key);
    this.#known.set(key, part);
    if (this.#known.size <= MOST) return;
    const [oldest = ""] = this.#known.keys();
    this.#known.delete(oldest);
  }

  async #look(kind: Parted, id: string): Promise<number | undefined> {
    const part = await findPart(this.#store, kind, id);
    if (part !== undefined) this.note(kind, id, part);
    return part;
  }
}
