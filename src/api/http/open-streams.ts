// Tracks open event streams (text/event-stream) and long polls. Their number is limited, and a stopping server can end them; Bun's own stop
// would wait for them indefinitely. Each belongs to the shard of its request and ends when that shard moves to another node.
import type { Clock } from "#base/clock.ts";
import { ALL_SHARDS, type Shards } from "#base/shards.ts";
import { ConnectionLimits } from "./holders.ts";
import { PingTimer } from "./ping.ts";
import type { Destination } from "./placement/placement.ts";

/** An open stream or poll; polls ignore pings. `isPoll`: when it ends early, the request may be repeated elsewhere. */
export type Open = { end(): void; ping(): void; readonly isPoll?: true };

export class OpenStreams {
  readonly #open: PingTimer<Open>;
  readonly #holders: ConnectionLimits;
  readonly #shards: Pick<Shards, "has">;
  readonly #places = new WeakMap<Request, Destination>();
  readonly #destinations = new WeakMap<Open, Destination>();
  readonly #polls = new WeakSet<Request>();

  /** At most `limit` may be open, three quarters of them by one caller. `shards`: the shards this node owns. */
  constructor(clock: Clock, limit = 20_000, shards: Pick<Shards, "has"> = ALL_SHARDS) {
    this.#open = new PingTimer(clock);
    this.#holders = new ConnectionLimits(limit);
    this.#shards = shards;
  }

  /** Assigns whatever this request opens to a shard, or to no particular node. */
  assign(request: Request, place: Destination): void {
    this.#places.set(request, place);
  }

  /** Tracks and pings an opened stream until the returned function is called. Throws 503 when too many are open. */
  add(open: Open, who: string | undefined, request: Request): () => void {
    this.#holders.check(who);
    this.#holders.count([who], 1);
    this.#open.add(open);
    const place = this.#places.get(request);
    if (place !== undefined) this.#destinations.set(open, place);
    if (open.isPoll) this.#polls.add(request);
    // Its shard moved away while it was being opened, so it would receive nothing more.
    if (typeof place === "number" && !this.#shards.has(place)) queueMicrotask(() => open.end());
    return () => {
      if (this.#open.delete(open)) this.#holders.count([who], -1);
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

  /** Ends the streams of shards that move to other nodes. Streams without a known shard end too. */
  endShards(isLeaving: (shard: number) => boolean): void {
    for (const open of this.#open.all()) {
      const place = this.#destinations.get(open);
      if (place === undefined || (typeof place === "number" && isLeaving(place))) open.end();
    }
  }
}
