// One `init` at a time writes to the folder of plugins that all runs share (facts/terraform 1.11). Nobody waits forever: one whose registry does
// not answer holds back no build of other templates.
import type { Clock } from "#base/clock.ts";
import { aborted, within } from "#base/retry.ts";

/** Milliseconds; many runs that begin immediately take less. */
const PATIENCE_MS = 30_000;

export class InitTurns {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves with what ends the turn, or undefined for one who has waited long enough. Rejects with the signal's reason. */
  async take(clock: Clock, signal: AbortSignal): Promise<(() => void) | undefined> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = Promise.all([before, promise]);
    const isTurn = await within(clock, PATIENCE_MS, Promise.race([before, aborted(signal)]));
    if (isTurn && !signal.aborted) return resolve;
    resolve();
    signal.throwIfAborted();
    return undefined;
  }
}
