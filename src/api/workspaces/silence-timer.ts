// Schedules a refresh of each watched workspace at the time when one of its agents may count as silent. One timer serves all workspaces
// (rule WK-22). Times in milliseconds since 1970.
import type { Clock, Timer } from "#base/clock.ts";

/** Minimum interval, so that workspaces due shortly after each other share one refresh. */
const MIN_MS = 1_000;

type Due = { readonly at: number; readonly look: () => void };

export class SilenceTimer {
  readonly #clock: Clock;
  readonly #entries = new Map<object, Due>();
  #timer: Timer | undefined;
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `look` once, not before `at`; a later call for the same object replaces it. */
  expect(thing: object, at: number, look: () => void): void {
    this.#entries.set(thing, { at, look });
    if (at < this.#dueAt) this.#arm(at);
  }

  remove(thing: object): void {
    this.#entries.delete(thing);
    if (this.#entries.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    const wait = Math.max(at - this.#clock.now(), MIN_MS);
    this.#dueAt = at;
    this.#timer = this.#clock.after(wait, () => this.#refreshDue());
  }

  #refreshDue(): void {
    const now = this.#clock.now();
    this.#timer = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
    const due = [...this.#entries].filter(([, { at }]) => at <= now);
    for (const [thing] of due) this.#entries.delete(thing);
    let next = Number.POSITIVE_INFINITY;
    for (const { at } of this.#entries.values()) next = Math.min(next, at);
    if (next < Number.POSITIVE_INFINITY) this.#arm(next);
    for (const [, { look }] of due) look();
  }
}
