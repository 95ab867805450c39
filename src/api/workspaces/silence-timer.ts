// Schedules a refresh of each watched workspace at the time when one of its agents may count as silent. One timer serves all workspaces
// (rule WK-22). Times in milliseconds since 1970.
import type { Clock, Timer } from "#base/clock.ts";

/** Minimum interval, so that workspaces due shortly after each other share one refresh. */
const MIN_INTERVAL_MS = 1_000;

type ScheduledCheck = { readonly at: number; readonly check: () => void };

export class SilenceTimer {
  readonly #clock: Clock;
  readonly #entries = new Map<object, ScheduledCheck>();
  #timer: Timer | undefined;
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `check` once, not before `at`. A later call with the same key replaces the earlier one. */
  schedule(key: object, at: number, check: () => void): void {
    this.#entries.set(key, { at, check });
    if (at < this.#dueAt) this.#arm(at);
  }

  remove(key: object): void {
    this.#entries.delete(key);
    if (this.#entries.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    const delayMs = Math.max(at - this.#clock.now(), MIN_INTERVAL_MS);
    this.#dueAt = at;
    this.#timer = this.#clock.after(delayMs, () => this.#refreshDue());
  }

  #refreshDue(): void {
    const now = this.#clock.now();
    this.#timer = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
    const due = [...this.#entries].filter(([, { at }]) => at <= now);
    for (const [key] of due) this.#entries.delete(key);
    let nextAt = Number.POSITIVE_INFINITY;
    for (const { at } of this.#entries.values()) nextAt = Math.min(nextAt, at);
    if (nextAt < Number.POSITIVE_INFINITY) this.#arm(nextAt);
    for (const [, { check }] of due) check();
  }
}
