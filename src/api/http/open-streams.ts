// The event streams (text/event-stream) and long polls that are open now: bounded like sockets, and known, so that a stopping server
// can end them; Bun's own stop would wait for them forever. Each is of the part of its request, and ends when that goes to another node.
import type { Clock } from "#base/clock.ts";
import { ALL_PARTS, type Parts } from "#base/parts.ts";
import { Holders } from "./holders.ts";
import { PingTimer } from "./ping.ts";
import type { Place } from "./placement/placement.ts";

/** A long poll has nothing to ping. `isPoll`: anyone who ends it before its time may ask for its answer elsewhere. */
export type Open = { end(): void; ping(): void; readonly isPoll?: true };

export class OpenStreams {
  readonly #open: PingTimer<Open>;
  readonly #holders: Holders;
  readonly #parts: Pick<Parts, "has">;
  readonly #places = new WeakMap<Request, Place>();
  readonly #placeOf = new WeakMap<Open, Place>();
  readonly #polls = new WeakSet<Request>();

  /** `limit` may be open at once, three quarters of them by one caller. `parts`: those of this node. */
  constructor(clock: Clock, limit = 20_000, parts: Pick<Parts, "has"> = ALL_PARTS) {
    this.#open = new PingTimer(clock);
    this.#holders = new Holders(limit);
    this.#parts = parts;
  }

  /** What this request opens is of this part, or of no node more than of another. */
  belongs(request: Request, place: Place): void {
    this.#places.set(request, place);
  }

  /** Remembers and pings what the request has opened until the returned function is called. Throws 503 when too many are open. */
  add(open: Open, who: string | undefined, request: Request): () => void {
    this.#holders.check(who);
    this.#holders.count(who, 1);
    this.#open.add(open);
    const place = this.#places.get(request);
    if (place !== undefined) this.#placeOf.set(open, place);
    if (open.isPoll) this.#polls.add(request);
    // It was under way while its part left: nothing would come on it any more.
    if (typeof place === "number" && !this.#parts.has(place)) queueMicrotask(() => open.end());
    return () => {
      if (this.#open.delete(open)) this.#holders.count(who, -1);
    };
  }

  /** The request waits for something, and has changed nothing. */
  isPoll(request: Request): boolean {
    return this.#polls.has(request);
  }

  get size(): number {
    return this.#open.size;
  }

  endAll(): void {
    for (const open of this.#open.all()) open.end();
  }

  /** Other nodes go on with these parts. What is of no known part ends, too. */
  endParts(isLeaving: (part: number) => boolean): void {
    for (const open of this.#open.all()) {
      const place = this.#placeOf.get(open);
      if (place === undefined || (typeof place === "number" && isLeaving(place))) open.end();
    }
  }
}
