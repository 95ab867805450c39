// Closes WebSockets while the process is short of memory.
import type { Clock, Timer } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { shareOfMemory } from "#base/system/memory.ts";

/** When the process occupies a larger share of the memory, the connections of the holder with the most are closed. */
const PRESSURE_SHARE = 3 / 4;
/** When it occupies this share, holders with few connections lose theirs, too: several accounts together may have filled the memory. */
const CRITICAL_SHARE = 7 / 8;
/** Below this part of the first share, closed connections are not counted any longer. */
const FILLING_SHARE = 2 / 3;
/** Short, because clients on a local network can fill hundreds of MiB in a tenth of a second. One check takes some 15 µs. */
const CHECK_INTERVAL_MS = 20;
/** Closing takes a moment to free the memory; until then, no one else loses connections. */
const RELIEF_INTERVAL_MS = 1_000;
const CRITICAL_RELIEF_INTERVAL_MS = 250;
const LOG_INTERVAL_MS = 60_000;
/** Holders with at most this many connections keep them while memory is short, or with fewer if messages may be long. */
const MAX_KEPT = 16;
/** The same while memory is nearly used up. */
const MAX_KEPT_CRITICAL = 4;
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

/** Memory is `short` beyond PRESSURE_SHARE, `critical` beyond CRITICAL_SHARE. */
type Pressure = "none" | "short" | "critical";

/**
 * Limits connections by the memory of the whole process, because the runtime does not report the memory of each connection. While memory is
 * short, the guard closes all connections of the holder with the most, one holder each second; four each second while it is critical.
 */
export class MemoryGuard<T> {
  readonly #options: GuardOptions<T>;
  readonly #shortBytes = shareOfMemory(PRESSURE_SHARE);
  readonly #criticalBytes = shareOfMemory(CRITICAL_SHARE);
  /** Holders with at most this many connections keep them while memory is short. */
  readonly #maxKept: number;
  readonly #heldBy = new Map<string, Set<T>>();
  #totalCount = 0;
  #timer: Timer | undefined;
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
    const pressure = this.#measurePressure();
    if (pressure !== "none" && heldCount >= this.#countKept(pressure))
      throw new AppError(
        "overloaded",
        "The server is short of memory. Close some of your connections, or try again later.",
      );
  }

  add(holder: string, connection: T): void {
    const { clock } = this.#options;
    this.#heldBy.set(holder, (this.#heldBy.get(holder) ?? new Set<T>()).add(connection));
    this.#totalCount += 1;
    // Fewer connections cannot fill the memory.
    if (this.#totalCount > this.#maxKept) this.#timer ??= clock.every(CHECK_INTERVAL_MS, () => this.#relieve());
  }

  delete(holder: string, connection: T): void {
    const connections = this.#heldBy.get(holder);
    if (!connections?.delete(connection)) return;
    if (connections.size === 0) this.#heldBy.delete(holder);
    this.#subtract(1);
  }

  #subtract(count: number): void {
    this.#totalCount -= count;
    if (this.#totalCount > this.#maxKept) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Returns whether the process occupies so much memory that data of closed connections has to be counted until it is freed. */
  get isFilling(): boolean {
    return this.#options.readUsedBytes() > this.#shortBytes * FILLING_SHARE;
  }

  #measurePressure(): Pressure {
    const usedBytes = this.#options.readUsedBytes();
    if (usedBytes > this.#criticalBytes) return "critical";
    return usedBytes > this.#shortBytes ? "short" : "none";
  }

  /** Returns the number of connections that a holder keeps. */
  #countKept(pressure: Pressure): number {
    return pressure === "critical" ? Math.min(this.#maxKept, MAX_KEPT_CRITICAL) : this.#maxKept;
  }

  #relieve(): void {
    const pressure = this.#measurePressure();
    if (pressure === "none") return;
    const now = this.#options.clock.monotonic();
    const interval_ms = pressure === "critical" ? CRITICAL_RELIEF_INTERVAL_MS : RELIEF_INTERVAL_MS;
    if (now - this.#relievedAt < interval_ms) return;
    const [holder = "", connections = new Set<T>()] =
      [...this.#heldBy].sort(([, a], [, b]) => b.size - a.size)[0] ?? [];
    if (connections.size <= this.#countKept(pressure)) return;
    this.#relievedAt = now;
    this.#closedCount += connections.size;
    for (const connection of [...connections]) this.#options.close(connection);
    this.#heldBy.delete(holder);
    this.#subtract(connections.size);
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    log("http").warn("memory is short: closed {closed} WebSockets, most recently those of {holder}", {
      closed: this.#closedCount,
      holder,
    });
    this.#loggedAt = now;
    this.#closedCount = 0;
  }
}
