// A simulated network: its clock advances when no work is pending, randomness has a seed, and a link delays, loses, duplicates and reorders
// packets. The same seed produces the same result.
import type { Clock, Timer } from "#base/clock.ts";
import type { Random } from "#base/random.ts";

type TimerEntry = { dueAt: number; order: number; run: () => void; isDone: boolean };

/** A clock whose timers fire in order as `run` advances it. */
export class Simulation implements Clock {
  #now = 0;
  #orders = 0;
  readonly #heap: TimerEntry[] = [];

  now(): number {
    return Date.UTC(2030, 0, 1) + this.#now;
  }
  monotonic(): number {
    return this.#now;
  }
  after(ms: number, run: () => void): Timer {
    const entry: TimerEntry = { dueAt: this.#now + Math.max(0, ms), order: this.#orders++, run, isDone: false };
    this.#push(entry);
    return {
      cancel: () => {
        entry.isDone = true;
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
  /** Simulates the end of a turn of the event loop. */
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
      if (!this.#step(end)) throw new Error(`no timer is due before the limit, at ${this.#now} ms`);
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
    while (this.#heap[0]?.isDone) this.#pop();
    const first = this.#heap[0];
    if (!first || first.dueAt > end) return false;
    this.#now = first.dueAt;
    while (this.#heap[0] && (this.#heap[0].isDone || this.#heap[0].dueAt <= this.#now)) {
      const entry = this.#pop();
      if (!entry.isDone) entry.run();
    }
    return true;
  }

  #push(entry: TimerEntry): void {
    const heap = this.#heap;
    let position = heap.push(entry) - 1;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if (!isBefore(entry, heap[parent] as TimerEntry)) break;
      heap[position] = heap[parent] as TimerEntry;
      position = parent;
    }
    heap[position] = entry;
  }

  #pop(): TimerEntry {
    const heap = this.#heap;
    const first = heap[0] as TimerEntry;
    const last = heap.pop() as TimerEntry;
    if (heap.length === 0) return first;
    let position = 0;
    for (;;) {
      let child = position * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as TimerEntry, heap[child] as TimerEntry)) child += 1;
      if (!isBefore(heap[child] as TimerEntry, last)) break;
      heap[position] = heap[child] as TimerEntry;
      position = child;
    }
    heap[position] = last;
    return first;
  }
}

const isBefore = (a: TimerEntry, b: TimerEntry): boolean =>
  a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order);
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export type Faults = {
  /** One-way delay in milliseconds. */
  delay?: number;
  /** Fractions of packets that are lost, duplicated or reordered. */
  loss?: number;
  duplicated?: number;
  reordered?: number;
  /** Bytes per millisecond, and the maximum number of queued bytes. */
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
      duplicated = 0,
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
    const copies = random() < duplicated ? 2 : 1;
    for (let i = 0; i < copies; i += 1) sim.after(freeAt - now + delay + extraDelay, () => deliver(copy.slice()));
  };
};
