// The event streams (text/event-stream) and long polls that are open now: bounded like sockets, and known, so that a stopping server
// can end them; Bun's own stop would wait for them for ever.
import type { Clock } from "#base/clock.ts";
import { Holders } from "./holders.ts";
import { PingTimer } from "./ping.ts";

/** A long poll has nothing to ping. */
export type Open = { end(): void; ping(): void };

export class OpenStreams {
  readonly #open: PingTimer<Open>;
  readonly #holders: Holders;

  /** `limit` may be open at once, three quarters of them by one caller. */
  constructor(clock: Clock, limit = 20_000) {
    this.#open = new PingTimer(clock);
    this.#holders = new Holders(limit);
  }

  /** Remembers and pings a stream until the returned function is called. Throws 503 when too many are open. */
  add(open: Open, who?: string): () => void {
    this.#holders.check(who);
    this.#holders.count(who, 1);
    this.#open.add(open);
    return () => {
      if (this.#open.delete(open)) this.#holders.count(who, -1);
    };
  }

  get size(): number {
    return this.#open.size;
  }

  endAll(): void {
    for (const open of this.#open.all()) open.end();
  }
}
