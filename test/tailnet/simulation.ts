// A simulated network: time advances when no work is left, randomness has a seed, and a link delays, loses, duplicates and reorders
// packets. A run with the same seed has the same result.
import type { Clock, Timer } from "#base/clock.ts";
import type { Random } from "#base/random.ts";

type Entry = { at: number; order: number; run: () => void; isOver: boolean };

/** A clock whose timers fire in order as `run` advances it. */
export class Simulation implements Clock {
  #now = 0;
  #orders = 0;
  readonly #heap: Entry[] = [];

  now(): number {
    return Date.UTC(2030, 0, 1) + this.#now;
  }
  monotonic(): number {
    return this.#now;
  }
  after(ms: number, run: () => void): Timer {
    const entry: Entry = { at: this.#now + Math.max(0, ms), order: this.#orders++, run, isOver: false };
    this.#push(entry);
    return {
      cancel: () => {
        entry.isOver = true;
      },
    };
  }
  every(ms: number, run: () => void): Timer {
    let timer: Timer;
    const repeat = (): void => {
      timer = this.after(ms, repeat);
      run();
    };
    timer = this.after(ms, repeat);
    return { cancel: () => timer.cancel() };
  }
  /** Stands for the end of a turn of the event loop. */
  readonly endOfTurn = (run: () => void): void => void this.after(0, run);

  /**
   * Advances time until the promise settles. Throws after `limit` milliseconds of this clock, or if no timer is left.
   */
  async until<T>(promise: Promise<T>, limit = 600_000): Promise<T> {
    let outcome: { value: T } | { error: unknown } | undefined;
    promise.then(
      (value) => {
        outcome = { value };
      },
      (error) => {
        outcome = { error };
      },
    );
    const end = this.#now + limit;
    await nextTurn();
    while (!outcome) {
      if (!this.#step(end)) throw new Error(`nothing more happens at ${this.#now} ms`);
      await nextTurn();
    }
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  /** Advances time. */
  async advance(ms: number): Promise<void> {
    await this.until(new Promise<void>((resolve) => this.after(ms, resolve)), ms + 1);
  }

  /** Advances to the next timer, and runs all work that is due then. */
  #step(end: number): boolean {
    while (this.#heap[0]?.isOver) this.#pop();
    const first = this.#heap[0];
    if (!first || first.at > end) return false;
    this.#now = first.at;
    while (this.#heap[0] && (this.#heap[0].isOver || this.#heap[0].at <= this.#now)) {
      const entry = this.#pop();
      if (!entry.isOver) entry.run();
    }
    return true;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(entry, heap[parent] as Entry)) break;
      heap[at] = heap[parent] as Entry;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): Entry {
    const heap = this.#heap;
    const first = heap[0] as Entry;
    const last = heap.pop() as Entry;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry)) child += 1;
      if (!isBefore(heap[child] as Entry, last)) break;
      heap[at] = heap[child] as Entry;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

const isBefore = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export type Faults = {
  /** One-way delay in milliseconds. */
  delay?: number;
  /** Fractions of packets. */
  loss?: number;
  doubled?: number;
  reordered?: number;
  /** Bytes per millisecond, and maximum queued bytes. */
  rate?: number;
  queue?: number;
};

/** Creates one direction of a link. Returns a function that sends over it. */
export const link = (
  sim: Pick<Clock, "monotonic" | "after">,
  random: Random,
  faults: () => Faults,
  deliver: (packet: Uint8Array) => void,
) => {
  let freeAt = 0;
  return (packet: Uint8Array): void => {
    const {
      delay = 1,
      loss = 0,
      doubled = 0,
      reordered = 0,
      rate = Number.POSITIVE_INFINITY,
      queue = Number.POSITIVE_INFINITY,
    } = faults();
    if (random() < loss) return;
    const copy = packet.slice();
    const now = sim.monotonic();
    const startsAt = Math.max(now, freeAt);
    if ((startsAt - now) * rate > queue) return;
    freeAt = startsAt + packet.byteLength / rate;
    const extraDelay = random() < reordered ? delay * 3 * random() : 0;
    const copies = random() < doubled ? 2 : 1;
    for (let i = 0; i < copies; i += 1) sim.after(freeAt - now + delay + extraDelay, () => deliver(copy.slice()));
  };
};
