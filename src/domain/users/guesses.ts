// Limits wrong passwords per account over all addresses: a maximum per hour, each answered later than the previous one (rule ID-19). An
// address where the account has signed in before, and an open session, are counted separately, so that attackers cannot lock the owner out.
// Unknown account names are counted like known ones. In memory and bounded.
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";

/** Maximum wrong passwords checked per hour. */
export const WRONG_AN_HOUR = 100;
/** This many are answered immediately, because people mistype. */
const AT_ONCE = 20;
/** Additional delay of each further one, up to a maximum. */
const LATER_MS = 25;
const LATEST_MS = 2_000;

const SPAN_MS = 5 * 60_000;
/** One hour plus the current span, so that no hour exceeds the limit, wherever it begins. */
const SPANS = 13;
const MAX_KEYS = 50_000;
/**
 * Entries with this count are kept when there is no room, because evicting them by guessing for other accounts would be too expensive for
 * an attacker.
 */
const WORTH_KEEPING = 10;

/** Counts in five-minute spans. */
type Counts = { readonly spans: Uint8Array; last: number };

export class Guesses {
  readonly #clock: Clock;
  readonly #counts = new Map<string, Counts>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a guess before it is checked, so that concurrent guesses cannot exceed the limit. Throws 429 with the time to wait. */
  count(key: string): void {
    const span = this.#span();
    const counts = this.#of(key, span);
    if (sum(counts) >= WRONG_AN_HOUR) throw this.#refusal(counts, span);
    const index = span % SPANS;
    counts.spans[index] = (counts.spans[index] ?? 0) + 1;
  }

  /** Undoes a count, because it was no guess. */
  forgive(key: string): void {
    const counts = this.#counts.get(key);
    if (!counts) return;
    const index = counts.last % SPANS;
    counts.spans[index] = Math.max(0, (counts.spans[index] ?? 0) - 1);
    if (sum(counts) === 0) this.#counts.delete(key);
  }

  /** Returns the milliseconds by which the response to a wrong password is delayed. */
  delayOf(key: string): number {
    const counts = this.#counts.get(key);
    return counts ? Math.min(LATEST_MS, Math.max(0, sum(counts) - AT_ONCE) * LATER_MS) : 0;
  }

  #span(): number {
    return Math.floor(this.#clock.monotonic() / SPAN_MS);
  }

  #of(key: string, span: number): Counts {
    const known = this.#counts.get(key);
    if (known) {
      for (let gone = Math.max(known.last + 1, span - SPANS + 1); gone <= span; gone++) known.spans[gone % SPANS] = 0;
      known.last = span;
      return known;
    }
    if (this.#counts.size >= MAX_KEYS) this.#makeRoom(span);
    const counts = { spans: new Uint8Array(SPANS), last: span };
    this.#counts.set(key, counts);
    return counts;
  }

  #makeRoom(span: number): void {
    for (const [key, counts] of this.#counts) {
      if (sum(counts) < WORTH_KEEPING || span - counts.last >= SPANS) this.#counts.delete(key);
      if (this.#counts.size < MAX_KEYS / 2) return;
    }
    if (this.#counts.size >= MAX_KEYS) this.#counts.clear();
  }

  /** The count falls below the limit when the first non-empty span expires. */
  #refusal(counts: Counts, span: number): AppError {
    let first = span - SPANS + 1;
    while (first < span && !counts.spans[(first + SPANS) % SPANS]) first++;
    const retry_after = Math.max(1, Math.ceil(((first + SPANS) * SPAN_MS - this.#clock.monotonic()) / 1000));
    return new AppError("too_many_requests", "Too many wrong passwords for this account within an hour.", {
      detail: "Sign in from where you have before, or try later. Open sessions continue.",
      retry_after,
    });
  }
}

const sum = ({ spans }: Counts): number => spans.reduce((all, one) => all + one, 0);
