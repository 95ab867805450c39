// When each watched workspace has to be looked at again because an agent of it may have gone silent: one timer for all of them, however
// many are watched (rule WK-22). Times in milliseconds since 1970.
import type { Clock, Timer } from "#base/clock.ts";

/** No oftener than this, so that many that are due one after the other cost one look. */
const MIN_MS = 1_000;

type Due = { readonly at: number; readonly look: () => void };

export class SilenceTimer {
  readonly #clock: Clock;
  readonly #dues = new Map<object, Due>();
  #timer: Timer | undefined;
  #at = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `look` is called once, not before `at`; a later call for the same thing takes its place. */
  expect(thing: object, at: number, look: () => void): void {
    this.#dues.set(thing, { at, look });
    if (at < this.#at) this.#arm(at);
  }

  forget(thing: object): void {
    this.#dues.delete(thing);
    if (this.#dues.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#at = Number.POSITIVE_INFINITY;
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    const wait = Math.max(at - this.#clock.now(), MIN_MS);
    this.#at = at;
    this.#timer = this.#clock.after(wait, () => this.#look());
  }

  #look(): void {
    const now = this.#clock.now();
    this.#timer = undefined;
    this.#at = Number.POSITIVE_INFINITY;
    const due = [...this.#dues].filter(([, { at }]) => at <= now);
    for (const [thing] of due) this.#dues.delete(thing);
    let next = Number.POSITIVE_INFINITY;
    for (const { at } of this.#dues.values()) next = Math.min(next, at);
    if (next < Number.POSITIVE_INFINITY) this.#arm(next);
    for (const [, { look }] of due) look();
  }
}
