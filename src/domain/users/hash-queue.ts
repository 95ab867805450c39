// Who is hashed next. Hashing is the dearest thing that a stranger can ask for, so it is shared by address and by account: anyone who has
// used least of it lately is served first, however many requests others have sent before (rule ID-18). Pure but for the clock.
import type { Clock } from "#base/clock.ts";

/** What was used counts half after this. */
const HALF_LIFE_MS = 30_000;
/** Keys of which the use is remembered. */
const MAX_KEYS = 20_000;
/** Use that is too little to remember when there is no room. */
const FORGOTTEN = 0.1;

/**
 * While no more than this wait, the first of equals is served first; beyond it the last. In a flood from ever new addresses everyone is
 * equal, and anyone who came first has gone before the queue is through.
 */
const CALM = 16;

/** For whom the work is. Its use is the sum of what its keys have used: an address and an account, or one that stands for both. */
export type Asker = {
  readonly keys: readonly string[];
  /** Served first among those who have used as little: people from addresses where they have signed in before. */
  readonly isKnown: boolean;
};

type Waiting<T> = { readonly item: T; readonly asker: Asker; readonly since: number };

/** How much each key has used lately. */
class RecentUse {
  readonly #clock: Clock;
  readonly #uses = new Map<string, { amount: number; at: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  of(key: string): number {
    const use = this.#uses.get(key);
    return use ? use.amount * 0.5 ** ((this.#clock.monotonic() - use.at) / HALF_LIFE_MS) : 0;
  }

  add(key: string, amount: number): void {
    const sum = Math.max(0, this.of(key) + amount);
    // Put in again, so that the map is in the order of the last use.
    this.#uses.delete(key);
    if (this.#uses.size >= MAX_KEYS) this.#forget();
    this.#uses.set(key, { amount: sum, at: this.#clock.monotonic() });
  }

  #forget(): void {
    for (const key of this.#uses.keys()) if (this.of(key) < FORGOTTEN) this.#uses.delete(key);
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

  /** At most `limit` wait, each for `longestWaitMs` at most. */
  constructor(clock: Clock, limit: number, longestWaitMs: number) {
    this.#clock = clock;
    this.#limit = limit;
    this.#longestWaitMs = longestWaitMs;
    this.#use = new RecentUse(clock);
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Takes one in. Answers the one that has to go because there is no room: anyone who has used most, of those the last to come. */
  add(item: T, asker: Asker): T | undefined {
    this.#waiting.push({ item, asker, since: this.#clock.monotonic() });
    if (this.#waiting.length <= this.#limit) return undefined;
    const ranks = this.#waiting.map((one) => this.#rank(one.asker));
    return this.#take(ranks.lastIndexOf(Math.max(...ranks)));
  }

  /** The next to be served, and those who have waited too long. */
  next(): { next: T | undefined; late: T[] } {
    const oldest = this.#clock.monotonic() - this.#longestWaitMs;
    const late = this.#waiting.filter(({ since }) => since < oldest).map(({ item }) => item);
    if (late.length > 0) this.#waiting = this.#waiting.filter(({ since }) => since >= oldest);
    const ranks = this.#waiting.map((one) => this.#rank(one.asker));
    const least = Math.min(...ranks);
    const index = ranks.length <= CALM ? ranks.indexOf(least) : ranks.lastIndexOf(least);
    return { next: this.#take(index), late };
  }

  /** Work for this asker begins: it counts for anyone who comes next with one of its keys. */
  used({ keys }: Asker): void {
    for (const key of keys) this.#use.add(key, 1);
  }

  /** The work was no guess after all. */
  forgive({ keys }: Asker): void {
    for (const key of keys) this.#use.add(key, -1);
  }

  #rank({ keys, isKnown }: Asker): number {
    return keys.reduce((sum, key) => sum + this.#use.of(key), isKnown ? -0.5 : 0);
  }

  #take(index: number): T | undefined {
    return index < 0 ? undefined : this.#waiting.splice(index, 1)[0]?.item;
  }
}
