// Cancelable waits, turns of the event loop, retries, and serialized work.
import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

/** Resolves after `ms` milliseconds on the clock, or immediately when the signal aborts. */
export const pause = (clock: Clock, ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const finish = (): void => {
      timer.cancel();
      // Without this, a signal that lives as long as the program would accumulate listeners.
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const timer = clock.after(ms, finish);
    signal?.addEventListener("abort", finish);
  });

/** Resolves in the next turn of the event loop. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Work between two turns of the event loop. */
const MAX_SLICE_MS = 5;

/** Lets long work in many small steps take turns with other work. Call `next` before each step. */
export class Slices {
  readonly #clock: Pick<Clock, "monotonic">;
  #since: number;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#since = clock.monotonic();
  }

  /** Resolves in the next turn of the event loop if this one has taken long enough. */
  async next(): Promise<void> {
    if (this.#clock.monotonic() - this.#since < MAX_SLICE_MS) return;
    await nextTurn();
    this.#since = this.#clock.monotonic();
  }
}

/** Longer work is followed by a pause of at most `MAX_REST_MS`. */
const LONG_WORK_MS = 5;
const MAX_REST_MS = 1_000;

/**
 * Waits for the next turn of the event loop. After long work, pauses for twice the duration of the work, so that repeated work takes at
 * most a third of the loop. `startedAt`: when the work started, on the monotonic clock.
 */
export const restAfter = async (clock: Clock, startedAt: number, signal?: AbortSignal): Promise<void> => {
  await nextTurn();
  const durationMs = clock.monotonic() - startedAt;
  if (durationMs > LONG_WORK_MS) await pause(clock, Math.min(2 * durationMs, MAX_REST_MS), signal);
};

/** Returns whether `work` finishes within `ms` milliseconds. Throws what `work` throws. */
export const finishesWithin = async (clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> => {
  const finished = new AbortController();
  try {
    return await Promise.race([work.then(() => true), pause(clock, ms, finished.signal).then(() => false)]);
  } finally {
    finished.abort();
  }
};

/** Resolves when the signal aborts. */
export const waitForAbort = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

const BASE_DELAY_MS = 100;

/**
 * Returns the milliseconds before attempt number `failures` + 1; `failures` starts at 0. The delay doubles up to the ceiling, and half of
 * it is random, so that clients that failed together do not retry at the same moment (rule DM-2).
 */
export const backoff = (failures: number, ceiling_ms: number, random: Random): number => {
  const delayMs = Math.min(ceiling_ms, BASE_DELAY_MS * 2 ** Math.min(failures, 30));
  return Math.round(delayMs * (0.5 + random() / 2));
};

/** Returns the milliseconds before the next attempt; undefined means no retry, and the error is thrown. */
export type RetryPolicy = (error: unknown, failures: number) => number | undefined;

/** Returns the result of the first successful attempt. Throws errors that are not retried, and the last error once the signal aborts. */
export const retry = async <T>(
  clock: Clock,
  attempt: () => Promise<T>,
  policy: RetryPolicy,
  signal?: AbortSignal,
): Promise<T> => {
  for (let failures = 1; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      const delayMs = policy(error, failures);
      if (delayMs === undefined) throw error;
      await pause(clock, delayMs, signal);
      if (signal?.aborted) throw error;
    }
  }
};

/** Returns a function that runs tasks one at a time: each starts when the previous task has succeeded or failed. */
export const createSerialQueue = (): (<T>(work: () => Promise<T>) => Promise<T>) => {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work, work);
    last = result.catch(() => {});
    return result;
  };
};

/**
 * Returns a function that runs the work immediately. Calls during a run cause one more run after it. Runs never overlap.
 * The work must not reject.
 */
export const coalesce = (work: () => Promise<void>): (() => void) => {
  let [isRunning, isDue] = [false, false];
  const run = async (): Promise<void> => {
    isRunning = true;
    while (isDue) {
      isDue = false;
      await work();
    }
    isRunning = false;
  };
  return () => {
    isDue = true;
    if (!isRunning) void run();
  };
};
