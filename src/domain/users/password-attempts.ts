// Limits wrong passwords per account over all addresses: a maximum per hour, each answered later than the previous one (rule ID-19). An
// address where the account has signed in before, and an open session, are counted separately, so that attackers cannot lock the owner out.
// Unknown account names are counted like known ones. In memory and bounded.
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";

/** Maximum wrong passwords checked per hour. */
export const MAX_WRONG_PER_HOUR = 100;
/** This many are answered immediately, because people mistype. */
const IMMEDIATE_GUESSES = 20;
/** Additional delay of each further one, up to a maximum. */
const DELAY_STEP_MS = 25;
const MAX_DELAY_MS = 2_000;

const SPAN_MS = 5 * 60_000;
/** One hour plus the current span, so that no hour exceeds the limit, whenever it begins. */
const SPAN_COUNT = 13;
const MAX_KEYS = 50_000;
/**
 * Entries with this count are kept when there is no room, because evicting them by guessing for other accounts would be too expensive for
 * an attacker.
 */
const MIN_KEPT_COUNT = 10;

/** Counts in five-minute spans. */
type SpanCounts = { readonly spans: Uint8Array; last: number };

export class Guesses {
  readonly #clock: Clock;
  readonly #counts = new Map<string, SpanCounts>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a guess before it is checked, so that concurrent guesses cannot exceed the limit. Throws 429 with the time to wait. */
  count(key: string): void {
    const span = this.#getCurrentSpan();
    const counts = this.#getCounts(key, span);
    if (sum(counts) >= MAX_WRONG_PER_HOUR) throw this.#makeError(counts, span);
    const index = span % SPAN_COUNT;
    counts.spans[index] = (counts.spans[index] ?? 0) + 1;
  }

  /** Undoes a count, because the attempt was not a guess. */
  forgive(key: string): void {
    const counts = this.#counts.get(key);
    if (!counts) return;
    const index = counts.last % SPAN_COUNT;
    counts.spans[index] = Math.max(0, (counts.spans[index] ?? 0) - 1);
    if (sum(counts) === 0) this.#counts.delete(key);
  }

  /** Returns the milliseconds by which the response to a wrong password is delayed. */
  getDelay(key: string): number {
    const counts = this.#counts.get(key);
    return counts ? Math.min(MAX_DELAY_MS, Math.max(0, sum(counts) - IMMEDIATE_GUESSES) * DELAY_STEP_MS) : 0;
  }

  #getCurrentSpan(): number {
    return Math.floor(this.#clock.monotonic() / SPAN_MS);
  }

  #getCounts(key: string, span: number): SpanCounts {
    const existing = this.#counts.get(key);
    if (existing) {
      for (let expired = Math.max(existing.last + 1, span - SPAN_COUNT + 1); expired <= span; expired++)
        existing.spans[expired % SPAN_COUNT] = 0;
      existing.last = span;
      return existing;
    }
    if (this.#counts.size >= MAX_KEYS) this.#makeRoom(span);
    const counts = { spans: new Uint8Array(SPAN_COUNT), last: span };
    this.#counts.set(key, counts);
    return counts;
  }

  #makeRoom(span: number): void {
    for (const [key, counts] of this.#counts) {
      if (sum(counts) < MIN_KEPT_COUNT || span - counts.last >= SPAN_COUNT) this.#counts.delete(key);
      if (this.#counts.size < MAX_KEYS / 2) return;
    }
    if (this.#counts.size >= MAX_KEYS) this.#counts.clear();
  }

  /** The count falls below the limit when the first non-empty span expires. */
  #makeError(counts: SpanCounts, span: number): AppError {
    let first = span - SPAN_COUNT + 1;
    while (first < span && !counts.spans[(first + SPAN_COUNT) % SPAN_COUNT]) first++;
    const retry_after = Math.max(1, Math.ceil(((first + SPAN_COUNT) * SPAN_MS - this.#clock.monotonic()) / 1000));
    return new AppError("too_many_requests", "Too many wrong passwords for this account within an hour.", {
      detail: "Sign in from where you have before, or try later. Open sessions continue.",
      retry_after,
    });
  }
}

const sum = ({ spans }: SpanCounts): number => spans.reduce((all, one) => all + one, 0);
