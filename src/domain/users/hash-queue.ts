// Schedules password hashing, the most expensive work an anonymous caller can request. Capacity is shared by address and account: the
// caller with the lowest recent use is served first, however many requests others have queued (rule ID-18). Pure except for the clock.
import type { Clock } from "#base/clock.ts";

/** Half-life of recorded use. */
const HALF_LIFE_MS = 30_000;
/** Maximum keys whose use is tracked. */
const MAX_KEYS = 20_000;
/** Use below this can be evicted when there is no room. */
const MIN_KEPT_USE = 0.1;

/**
 * Up to this many waiting requests, equal ones are served first come, first served; beyond it, the last one is served first. In a flood
 * from ever new addresses all requests are equal, and the clients of the oldest ones have given up before their turn.
 */
const MAX_FIFO_WAITING = 16;

/** The caller that the work is for. Their use is the sum of their keys' use: an address and an account, or one key for both. */
export type HashCaller = {
  readonly keys: readonly string[];
  /** Served first among those with equal use: people at addresses where they have signed in before. */
  readonly isKnown: boolean;
};

type Waiting<T> = { readonly item: T; readonly caller: HashCaller; readonly since: number };

/** Tracks how much each key has used recently. */
class RecentUse {
  readonly #clock: Clock;
  readonly #uses = new Map<string, { amount: number; at: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  getAmount(key: string): number {
    const use = this.#uses.get(key);
    return use ? use.amount * 0.5 ** ((this.#clock.monotonic() - use.at) / HALF_LIFE_MS) : 0;
  }

  add(key: string, amount: number): void {
    const sum = Math.max(0, this.getAmount(key) + amount);
    // Reinserted, so that the map is ordered by last use.
    this.#uses.delete(key);
    if (this.#uses.size >= MAX_KEYS) this.#evict();
    this.#uses.set(key, { amount: sum, at: this.#clock.monotonic() });
  }

  #evict(): void {
    for (const key of this.#uses.keys()) if (this.getAmount(key) < MIN_KEPT_USE) this.#uses.delete(key);
    for (const key of this.#uses.keys()) {
      if (this.#uses.size < MAX_KEYS) return;
      this.#uses.delete(key);
    }
  }
}

export class HashQueue<T> {
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #longestWaitMs: number;
  readonly #use: RecentUse;
  #waiting: Waiting<T>[] = [];

  /** At most `limit` requests wait, each for at most `longestWaitMs`. */
  constructor(clock: Clock, limit: number, longestWaitMs: number) {
    this.#clock = clock;
    this.#limit = limit;
    this.#longestWaitMs = longestWaitMs;
    this.#use = new RecentUse(clock);
  }

  get size(): number {
    return this.#waiting.length;
  }

  /**
   * Adds a request. Returns the one that is dropped when the queue is full: the latest request of the caller with the highest recent use.
   */
  add(item: T, caller: HashCaller): T | undefined {
    this.#waiting.push({ item, caller, since: this.#clock.monotonic() });
    if (this.#waiting.length <= this.#limit) return undefined;
    const ranks = this.#waiting.map((one) => this.#rank(one.caller));
    return this.#removeAt(ranks.lastIndexOf(Math.max(...ranks)));
  }

  /** Returns the next request to serve, and the requests that have waited too long. */
  next(): { next: T | undefined; late: T[] } {
    const oldest = this.#clock.monotonic() - this.#longestWaitMs;
    const late = this.#waiting.filter(({ since }) => since < oldest).map(({ item }) => item);
    if (late.length > 0) this.#waiting = this.#waiting.filter(({ since }) => since >= oldest);
    const ranks = this.#waiting.map((one) => this.#rank(one.caller));
    const lowest = Math.min(...ranks);
    const index = ranks.length <= MAX_FIFO_WAITING ? ranks.indexOf(lowest) : ranks.lastIndexOf(lowest);
    return { next: this.#removeAt(index), late };
  }

  /** Records use when work for this caller starts; it affects later requests with one of its keys. */
  recordUse({ keys }: HashCaller): void {
    for (const key of keys) this.#use.add(key, 1);
  }

  /** Undoes the use, because the attempt was not a guess. */
  forgive({ keys }: HashCaller): void {
    for (const key of keys) this.#use.add(key, -1);
  }

  #rank({ keys, isKnown }: HashCaller): number {
    return keys.reduce((sum, key) => sum + this.#use.getAmount(key), isKnown ? -0.5 : 0);
  }

  #removeAt(index: number): T | undefined {
    return index < 0 ? undefined : this.#waiting.splice(index, 1)[0]?.item;
  }
}
