// Closes WebSockets while the process is short of memory.
import type { Clock, Timer } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { shareOfMemory } from "#base/system/memory.ts";

/** When the process occupies a larger share of the memory, the connections of the holder with the most are closed. */
const PRESSURE_SHARE = 3 / 4;
/** Below this part of that share, closed connections are not counted any longer. */
const FILLING_SHARE = 2 / 3;
/** Short, because clients on a local network can fill hundreds of MiB in a tenth of a second. One check takes some 15 µs. */
const CHECK_INTERVAL_MS = 20;
/** Closing takes a moment to free the memory; until then, no one else loses connections. */
const RELIEF_INTERVAL_MS = 1_000;
const LOG_INTERVAL_MS = 60_000;
/** Holders with at most this many connections keep them while memory is short, or with fewer if messages may be long. */
const MAX_KEPT = 16;
/** The share of the memory that unfinished messages of one holder may occupy while memory is short. */
const KEPT_SHARE = 1 / 4;

type GuardOptions<T> = {
  readonly clock: Clock;
  /** Returns the bytes that the process occupies. */
  readonly readUsedBytes: () => number;
  /** Maximum bytes of an unfinished message. */
  readonly maxMessageBytes: number;
  /** Must free the memory of the connection immediately. */
  readonly close: (connection: T) => void;
};

/**
 * Limits connections by the memory of the whole process, because the runtime does not report the memory of each connection. While memory is
 * short, the guard closes all connections of one holder each second.
 */
export class MemoryGuard<T> {
  readonly #options: GuardOptions<T>;
  readonly #maxBytes = shareOfMemory(PRESSURE_SHARE);
  /** Holders with at most this many connections keep them while memory is short. */
  readonly #maxKept: number;
  readonly #heldBy = new Map<string, Set<T>>();
  #timer: Timer | undefined;
  /** Holders with so many connections that they can lose them. */
  #crowdedCount = 0;
  /** Connections closed since the last line in the log. */
  #closedCount = 0;
  #loggedAt = -LOG_INTERVAL_MS;
  #relievedAt = -RELIEF_INTERVAL_MS;

  constructor(options: GuardOptions<T>) {
    this.#options = options;
    this.#maxKept = Math.max(1, Math.min(MAX_KEPT, Math.floor(shareOfMemory(KEPT_SHARE) / options.maxMessageBytes)));
  }

  /** Throws 503 when memory is short and the holder has the maximum number of connections. */
  check(holder: string): void {
    const heldCount = this.#heldBy.get(holder)?.size ?? 0;
    if (heldCount >= this.#maxKept && this.#isShort)
      throw new AppError(
        "overloaded",
        "The server is short of memory. Close some of your connections, or try again later.",
      );
  }

  add(holder: string, connection: T): void {
    const { clock } = this.#options;
    const connections = this.#heldBy.get(holder) ?? new Set<T>();
    this.#heldBy.set(holder, connections.add(connection));
    if (connections.size !== this.#maxKept + 1) return;
    this.#crowdedCount += 1;
    if (this.#crowdedCount === 1) this.#timer = clock.every(CHECK_INTERVAL_MS, () => this.#relieve());
  }

  delete(holder: string, connection: T): void {
    const connections = this.#heldBy.get(holder);
    if (!connections?.delete(connection)) return;
    if (connections.size === 0) this.#heldBy.delete(holder);
    if (connections.size === this.#maxKept) this.#endCrowded();
  }

  #endCrowded(): void {
    this.#crowdedCount -= 1;
    if (this.#crowdedCount === 0) this.#timer?.cancel();
  }

  /** Returns whether the process occupies so much memory that data of closed connections has to be counted until it is freed. */
  get isFilling(): boolean {
    return this.#options.readUsedBytes() > this.#maxBytes * FILLING_SHARE;
  }

  get #isShort(): boolean {
    return this.#options.readUsedBytes() > this.#maxBytes;
  }

  #relieve(): void {
    const now = this.#options.clock.monotonic();
    if (now - this.#relievedAt < RELIEF_INTERVAL_MS || !this.#isShort) return;
    const [holder = "", connections = new Set<T>()] =
      [...this.#heldBy].sort(([, a], [, b]) => b.size - a.size)[0] ?? [];
    if (connections.size <= this.#maxKept) return;
    this.#relievedAt = now;
    this.#closedCount += connections.size;
    for (const connection of [...connections]) this.#options.close(connection);
    this.#heldBy.delete(holder);
    this.#endCrowded();
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    log("http").warn("memory is short: closed {closed} WebSockets, most recently those of {holder}", {
      closed: this.#closedCount,
      holder,
    });
    this.#loggedAt = now;
    this.#closedCount = 0;
  }
}
