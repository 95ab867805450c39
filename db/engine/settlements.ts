// Answers the callers of a commit group in slices. A group can hold hundreds of batches; if all callers continued in one turn of the event
// loop, everything else would wait for their work. Measured with 200 builds at once: one turn of 100 ms.
import { systemClock } from "#base/clock.ts";

/** Callers answered before anything is measured. Groups of this size, which log ingest has, are answered at once. */
const FIRST_SLICE = 8;
const MAX_SLICE = 64;
/** Milliseconds that a slice and the work of its callers should take. */
const BUDGET_MS = 4;

export class Settlements {
  readonly #waiting: (() => void)[] = [];
  readonly #idle: (() => void)[] = [];
  #slice = FIRST_SLICE;
  #began = 0;
  #isScheduled = false;

  /** Calls these in order, after all earlier ones: a slice now unless earlier ones are still waiting, the rest in later turns of the event loop. */
  add(settles: readonly (() => void)[]): void {
    for (const settle of settles) this.#waiting.push(settle);
    if (!this.#isScheduled) this.#run();
  }

  /** Resolves when every caller has been answered. */
  async drained(): Promise<void> {
    if (this.#isScheduled) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #run(): void {
    this.#began = systemClock.monotonic();
    for (const settle of this.#waiting.splice(0, this.#slice)) settle();
    this.#isScheduled = true;
    setImmediate(() => this.#measure());
  }

  /** The callers' work shows only now, a turn later: the next slice is smaller if it took too long. */
  #measure(): void {
    this.#isScheduled = false;
    const isLong = systemClock.monotonic() - this.#began > BUDGET_MS;
    this.#slice = isLong ? Math.max(1, this.#slice >> 1) : Math.min(MAX_SLICE, this.#slice << 1);
    if (this.#waiting.length > 0) this.#run();
    else for (const resolve of this.#idle.splice(0)) resolve();
  }
}
