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
const CRITICAL_RELIEF_INTERVAL_MS = 50;
/** A holder whose closed connections have freed nothing keeps the next ones for this long, unless memory is nearly used up. */
const SPARED_MS = 600_000;
/** Memory that stays short for this long is filled by holders with few connections. */
const LASTING_MS = 5_000;
const LOG_INTERVAL_MS = 60_000;
/** Holders with at most this many connections keep them while memory is short, or with fewer if messages may be long. */
const MAX_KEPT = 16;
/** The same while memory is nearly used up, or has been short for some time. */
const MAX_KEPT_LONGER = 4;
/** The share of the memory that unfinished messages of one holder may occupy while memory is short. */
const KEPT_SHARE = 1 / 4;
/** The same for all holders of more than MAX_KEPT_LONGER connections together. */
const KEPT_SHARE_OF_ALL = 1 / 2;

type GuardOptions<T> = {
  readonly clock: Clock;
  /** Returns the bytes that the process occupies. */
  readonly readUsedBytes: () => number;
  /** Maximum bytes of an unfinished message. */
  readonly maxMessageBytes: number;
  /** Must free the memory of the connection immediately. */
  readonly close: (connection: T) => void;
};

/** Memory is `short` beyond PRESSURE_SHARE, `lasting` if it has been short for LASTING_MS, `critical` beyond CRITICAL_SHARE. */
type Pressure = "none" | "short" | "lasting" | "critical";

/**
 * Limits connections by the memory of the whole process, because the runtime does not report the memory of each connection. While memory is
 * short, the guard closes all connections of the holder with the most, one holder each second; twenty each second while it is critical. What
 * that frees shows whether the holder had filled the memory.
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
  /** Since when memory has been short. */
  #shortSince: number | undefined;
  /** The last holder whose connections were closed, until it is known what that has freed, and the least memory used since. */
  #relief: { readonly holder: string; readonly usedBytes: number; leastBytes: number } | undefined;
  /** Until when holders keep their connections. */
  readonly #sparedUntil = new Map<string, number>();

  constructor(options: GuardOptions<T>) {
    this.#options = options;
    this.#maxKept = Math.max(1, Math.min(MAX_KEPT, Math.floor(shareOfMemory(KEPT_SHARE) / options.maxMessageBytes)));
  }

  /** Throws 503 when memory is short and the holder has the maximum number of connections. */
  check(holder: string): void {
    const heldCount = this.countHeld(holder);
    const pressure = this.#measurePressure();
    if (pressure === "none" || this.#isSpared(holder, pressure)) return;
    if (heldCount >= this.#countKept(pressure))
      throw new AppError(
        "overloaded",
        "The server is short of memory. Close some of your connections, or try again later.",
      );
  }

  countHeld(holder: string): number {
    return this.#heldBy.get(holder)?.size ?? 0;
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
    this.#stopWhenIdle();
  }

  /** Stops the timer once the few connections that are left cannot fill the memory, and the last relief has been judged. */
  #stopWhenIdle(): void {
    if (this.#totalCount > this.#maxKept || this.#relief) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#shortSince = undefined;
  }

  /** Returns whether the process occupies so much memory that data of closed connections has to be counted until it is freed. */
  get isFilling(): boolean {
    return this.#options.readUsedBytes() > this.#shortBytes * FILLING_SHARE;
  }

  #measurePressure(usedBytes = this.#options.readUsedBytes()): Pressure {
    if (usedBytes <= this.#shortBytes) {
      this.#shortSince = undefined;
      return "none";
    }
    const now = this.#options.clock.monotonic();
    this.#shortSince ??= now;
    if (usedBytes > this.#criticalBytes) return "critical";
    return now - this.#shortSince > LASTING_MS ? "lasting" : "short";
  }

  /** Returns the number of connections that a holder keeps: fewer, the more holders have many. */
  #countKept(pressure: Pressure): number {
    const least = Math.min(this.#maxKept, MAX_KEPT_LONGER);
    if (pressure !== "short") return least;
    const manyCount = [...this.#heldBy.values()].filter(({ size }) => size > least).length;
    const share = Math.floor(shareOfMemory(KEPT_SHARE_OF_ALL) / this.#options.maxMessageBytes / Math.max(1, manyCount));
    return Math.max(least, Math.min(this.#maxKept, share));
  }

  /** Spares the last holder if closing its connections has not freed the memory of a single message, not even for a moment. */
  #judge(now: number): void {
    const relief = this.#relief;
    if (!relief) return;
    this.#relief = undefined;
    // The system may report freed memory with a delay.
    const isKnown = now - this.#relievedAt >= RELIEF_INTERVAL_MS;
    if (isKnown && relief.usedBytes - relief.leastBytes < this.#options.maxMessageBytes)
      this.#sparedUntil.set(relief.holder, now + SPARED_MS);
    for (const [holder, until] of this.#sparedUntil) if (until <= now) this.#sparedUntil.delete(holder);
  }

  #isSpared(holder: string, pressure: Pressure): boolean {
    return pressure !== "critical" && (this.#sparedUntil.get(holder) ?? 0) > this.#options.clock.monotonic();
  }

  /** Returns the holder with the most connections that may lose them. */
  #findLargest(pressure: Pressure): readonly [string, Set<T>] | undefined {
    const keptCount = this.#countKept(pressure);
    return [...this.#heldBy]
      .filter(([holder, { size }]) => size > keptCount && !this.#isSpared(holder, pressure))
      .reduce<readonly [string, Set<T>] | undefined>(
        (most, one) => (most === undefined || one[1].size > most[1].size ? one : most),
        undefined,
      );
  }

  #relieve(): void {
    const usedBytes = this.#options.readUsedBytes();
    const pressure = this.#measurePressure(usedBytes);
    const now = this.#options.clock.monotonic();
    const interval_ms = pressure === "critical" ? CRITICAL_RELIEF_INTERVAL_MS : RELIEF_INTERVAL_MS;
    if (this.#relief) this.#relief.leastBytes = Math.min(this.#relief.leastBytes, usedBytes);
    if (now - this.#relievedAt < interval_ms) return;
    this.#judge(now);
    this.#stopWhenIdle();
    const found = pressure === "none" ? undefined : this.#findLargest(pressure);
    if (!found) return;
    const [holder, connections] = found;
    this.#relievedAt = now;
    this.#relief = { holder, usedBytes, leastBytes: usedBytes };
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
