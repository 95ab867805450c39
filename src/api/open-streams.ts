// The event streams (text/event-stream) and long polls that are open now: bounded like sockets, and known, so that a stopping server
// can end them; Bun's own stop would wait for them for ever.
import { Holders } from "./holders.ts";

export class OpenStreams {
  readonly #ends = new Set<() => void>();
  readonly #holders: Holders;

  /** `limit` may be open at once, three quarters of them by one caller. */
  constructor(limit = 20_000) {
    this.#holders = new Holders(limit);
  }

  /** Remembers how to end a stream until the returned function is called. Throws 503 when too many are open. */
  add(end: () => void, who?: string): () => void {
    this.#holders.check(who);
    this.#holders.count(who, 1);
    this.#ends.add(end);
    return () => {
      if (this.#ends.delete(end)) this.#holders.count(who, -1);
    };
  }

  get size(): number {
    return this.#ends.size;
  }

  endAll(): void {
    for (const end of [...this.#ends]) end();
  }
}
