// Closes connections to apps while the process is short of memory.
import type { Clock, Timer } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { shareOfMemory } from "#base/system/memory.ts";

/** Above this share of the memory, the holder of the most connections loses them. */
const PRESSURE_SHARE = 3 / 4;
/** A local network fills hundreds of MiB in a second. */
const CHECK_INTERVAL_MS = 100;
/** Closing takes a moment to free the memory; until then, no one else loses connections. */
const RELIEF_INTERVAL_MS = 1_000;
const LOG_INTERVAL_MS = 60_000;
/** A holder of this many connections keeps them under pressure. */
const MAX_SOCKETS_UNDER_PRESSURE = 16;

type GuardOptions<T> = {
  readonly clock: Clock;
  /** Returns the bytes that the process occupies. */
  readonly readUsed: () => number;
  /** Must free the memory of the connection immediately. */
  readonly close: (connection: T) => void;
};

/**
 * Limits connections by the memory that the process occupies, because the runtime does not show what it holds of each: under pressure, one
 * holder a second loses all of them.
 */
export class MemoryGuard<T> {
  readonly #options: GuardOptions<T>;
  readonly #limit = shareOfMemory(PRESSURE_SHARE);
  readonly #heldBy = new Map<string, Set<T>>();
  #timer: Timer | undefined;
  /** Connections closed since the last line in the log. */
  #closed = 0;
  #logged_at = -LOG_INTERVAL_MS;
  #relieved_at = -RELIEF_INTERVAL_MS;

  constructor(options: GuardOptions<T>) {
    this.#options = options;
  }

  /** Throws 503 when the holder can have no more connections while memory is short. */
  check(holder: string): void {
    const held = this.#heldBy.get(holder)?.size ?? 0;
    if (held >= MAX_SOCKETS_UNDER_PRESSURE && this.#isShort)
      throw new AppError("overloaded", "The server is short of memory. Close connections to apps, or try again later.");
  }

  add(holder: string, connection: T): void {
    const { clock } = this.#options;
    if (this.#heldBy.size === 0) this.#timer = clock.every(CHECK_INTERVAL_MS, () => this.#relieve());
    const held = this.#heldBy.get(holder) ?? new Set<T>();
    this.#heldBy.set(holder, held.add(connection));
  }

  delete(holder: string, connection: T): void {
    const held = this.#heldBy.get(holder);
    held?.delete(connection);
    if (held?.size === 0) this.#remove(holder);
  }

  #remove(holder: string): void {
    this.#heldBy.delete(holder);
    if (this.#heldBy.size === 0) this.#timer?.cancel();
  }

  get #isShort(): boolean {
    return this.#options.readUsed() > this.#limit;
  }

  #relieve(): void {
    const now = this.#options.clock.monotonic();
    if (now - this.#relieved_at < RELIEF_INTERVAL_MS || !this.#isShort) return;
    const [holder = "", held = new Set<T>()] = [...this.#heldBy].sort(([, a], [, b]) => b.size - a.size)[0] ?? [];
    if (held.size <= MAX_SOCKETS_UNDER_PRESSURE) return;
    this.#relieved_at = now;
    this.#closed += held.size;
    for (const connection of [...held]) this.#options.close(connection);
    this.#remove(holder);
    if (now - this.#logged_at < LOG_INTERVAL_MS) return;
    log("applications").warn("memory is short: closed {closed} WebSockets to apps, the last of {holder}", {
      closed: this.#closed,
      holder,
    });
    this.#logged_at = now;
    this.#closed = 0;
  }
}
