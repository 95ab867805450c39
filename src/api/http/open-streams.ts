// Tracks open event streams (text/event-stream) and long polls. Their number is limited, and a stopping server can end them; Bun's own stop
// would wait for them indefinitely. Each ends when the rows of its request move to another node.
import type { Clock } from "#base/clock.ts";
import type { IsLeaving } from "#db/own-rows.ts";
import { type ConnectionHolder, ConnectionShares } from "./holders.ts";
import { PingTimer } from "./ping.ts";
import type { Destination } from "./placement/placement.ts";

/** An open stream or poll; polls ignore pings. `isPoll`: when it ends early, the request may be repeated elsewhere. */
export type Open = { end(): void; ping(): void; readonly isPoll?: true };

export class OpenStreams {
  readonly #open: PingTimer<Open>;
  readonly #holders: ConnectionShares;
  readonly #isHere: (part: number) => boolean;
  readonly #byRequest = new WeakMap<Request, Destination>();
  readonly #byStream = new WeakMap<Open, Destination>();
  readonly #polls = new WeakSet<Request>();

  /** At most `limit` may be open, shared among the callers. */
  constructor(clock: Clock, limit = 20_000, isHere: (part: number) => boolean = () => true) {
    this.#open = new PingTimer(clock);
    this.#holders = new ConnectionShares(limit);
    this.#isHere = isHere;
  }

  /** Sets the destination of every stream that this request opens. */
  assign(request: Request, destination: Destination): void {
    this.#byRequest.set(request, destination);
  }

  /** Tracks and pings an opened stream until the returned function is called. Throws 503 when too many are open. */
  add(open: Open, holder: ConnectionHolder, request: Request): () => void {
    this.#holders.check(holder);
    this.#holders.count(holder, 1);
    this.#open.add(open);
    const destination = this.#byRequest.get(request);
    if (destination !== undefined) this.#byStream.set(open, destination);
    if (open.isPoll) this.#polls.add(request);
    // Its rows moved away while it was being opened, so it would receive nothing more.
    if (typeof destination === "number" && !this.#isHere(destination)) queueMicrotask(() => open.end());
    return () => {
      if (this.#open.delete(open)) this.#holders.count(holder, -1);
    };
  }

  /** Returns whether the request is a long poll, which waits and changes nothing. */
  isPoll(request: Request): boolean {
    return this.#polls.has(request);
  }

  get size(): number {
    return this.#open.size;
  }

  endAll(): void {
    for (const open of this.#open.all()) open.end();
  }

  /** Ends the streams about rows that leave this node, and streams without a known destination. */
  release(isLeaving: IsLeaving): void {
    for (const open of this.#open.all()) {
      const destination = this.#byStream.get(open);
      if (destination === undefined || (typeof destination === "number" && isLeaving(destination))) open.end();
    }
  }
}
