// Serializes `init` runs, which write to the plugin folder shared by all runs (facts/terraform 1.11). The wait for a turn is limited, so
// that an unresponsive registry does not block builds of other templates.
import type { Clock } from "#base/clock.ts";
import { finishesWithin, waitForAbort } from "#base/retry.ts";

/** Even many runs that start at the same time need less than this. */
const TURN_TIMEOUT_MS = 30_000;

export class InitTurns {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves with a function that ends the turn, or with undefined after a timeout. Rejects with the signal's reason. */
  async waitForTurn(clock: Clock, signal: AbortSignal): Promise<(() => void) | undefined> {
    const previous = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = Promise.all([previous, promise]);
    const hasTurn = await finishesWithin(clock, TURN_TIMEOUT_MS, Promise.race([previous, waitForAbort(signal)]));
    if (hasTurn && !signal.aborted) return resolve;
    resolve();
    signal.throwIfAborted();
    return undefined;
  }
}
