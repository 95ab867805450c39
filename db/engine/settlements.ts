// Answers the callers of a commit group in slices. A group can have hundreds of batches. If all callers continued in one turn of the event
// loop, all other work would wait for them: with 200 concurrent builds, one turn took 100 ms.

/** Number of callers that are answered in one turn. The work of a caller takes up to 1 ms. Groups of log lines are smaller than this. */
const SLICE_CALLERS = 8;

export class Settlements {
  readonly #waiting: (() => void)[] = [];
  readonly #drainWaiters: (() => void)[] = [];
  #isScheduled = false;

  /**
   * Calls these functions in order, after all earlier ones. Calls a slice immediately unless earlier ones are waiting, and the others in
   * later turns of the event loop.
   */
  add(settles: readonly (() => void)[]): void {
    for (const settle of settles) this.#waiting.push(settle);
    if (!this.#isScheduled) this.#settleSlice();
  }

  /** Resolves when every caller has been answered. */
  async whenDrained(): Promise<void> {
    if (this.#isScheduled) await new Promise<void>((resolve) => this.#drainWaiters.push(resolve));
  }

  #settleSlice(): void {
    for (const settle of this.#waiting.splice(0, SLICE_CALLERS)) settle();
    this.#isScheduled = this.#waiting.length > 0;
    if (this.#isScheduled) setImmediate(() => this.#settleSlice());
    else for (const resolve of this.#drainWaiters.splice(0)) resolve();
  }
}
