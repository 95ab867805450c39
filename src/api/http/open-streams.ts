// Tracks open event streams (text/event-stream) and long polls. Their number is limited, and a stopping server can end them; Bun's own stop
// would wait for them indefinitely. Each ends when the rows of its request move to another node.
import type { Clock } from "#base/clock.ts";
import type { IsLeaving } from "#db/own-rows.ts";
import { type ConnectionHolder, ConnectionShares } from "./holders.ts";
import { PingTimer } from "./ping.ts";
import type { Destination } from "./placement/placement.ts";

/** An open stream or poll; polls ignore pings. `isPoll`: when it ends early, the request may be repeated elsewhere. */
export type OpenStream = { end(): void; ping(): void; readonly isPoll?: true };

export class OpenStreams {
  readonly #streams: PingTimer<OpenStream>;
  readonly #holders: ConnectionShares;
  readonly #isHere: (part: number) => boolean;
  readonly #requestDestinations = new WeakMap<Request, Destination>();
  readonly #streamDestinations = new WeakMap<OpenStream, Destination>();
  readonly #polls = new WeakSet<Request>();

  /** At most `limit` may be open, shared among the callers. */
  constructor(clock: Clock, limit = 20_000, isHere: (part: number) => boolean = () => true) {
    this.#streams = new PingTimer(clock);
    this.#holders = new ConnectionShares(limit);
    this.#isHere = isHere;
  }

  /** Sets the destination of every stream that this request opens. */
  assign(request: Request, destination: Destination): void {
    this.#requestDestinations.set(request, destination);
  }

  /** Tracks and pings an opened stream until the returned function is called. Throws 503 when too many are open. */
  add(stream: OpenStream, holder: ConnectionHolder, request: Request): () => void {
    this.#holders.check(holder);
    this.#holders.count(holder, 1);
    this.#streams.add(stream);
    const destination = this.#requestDestinations.get(request);
    if (destination !== undefined) this.#streamDestinations.set(stream, destination);
    if (stream.isPoll) this.#polls.add(request);
    // Its rows moved away while it was being opened, so it would receive nothing more.
    if (typeof destination === "number" && !this.#isHere(destination)) queueMicrotask(() => stream.end());
    return () => {
      if (this.#streams.delete(stream)) this.#holders.count(holder, -1);
    };
  }

  /** Returns whether the request is a long poll, which waits and changes nothing. */
  isPoll(request: Request): boolean {
    return this.#polls.has(request);
  }

  get size(): number {
    return this.#streams.size;
  }

  endAll(): void {
    for (const stream of this.#streams.all()) stream.end();
  }

  /** Ends the streams about rows that leave this node, and streams without a known destination. */
  release(isLeaving: IsLeaving): void {
    for (const stream of this.#streams.all()) {
      const destination = this.#streamDestinations.get(stream);
      if (destination === undefined || (typeof destination === "number" && isLeaving(destination))) stream.end();
    }
  }
}
