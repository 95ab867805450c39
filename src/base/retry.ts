// Cancelable waits, turns of the event loop, retries, and serialized work.
import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

/** Resolves after `ms` milliseconds on the clock, or immediately when the signal aborts. */
export const pause = (clock: Clock, ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const finish = (): void => {
      timer.cancel();
      // Otherwise a signal that lives as long as the program would accumulate listeners.
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const timer = clock.after(ms, finish);
    signal?.addEventListener("abort", finish);
  });

/** Resolves in the next turn of the event loop. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Work that took longer than this, in milliseconds, is followed by a pause of at most `MAX_REST_MS`. */
const LONG_WORK_MS = 5;
const MAX_REST_MS = 1_000;

/**
 * Waits for the next turn of the event loop, and after long work twice as long as it took, so that repeated work takes at most a third of the
 * loop. `began`: when the work started, on the monotonic clock.
 */
export const restAfter = async (clock: Clock, began: number, signal?: AbortSignal): Promise<void> => {
  await nextTurn();
  const took = clock.monotonic() - began;
  if (took > LONG_WORK_MS) await pause(clock, Math.min(2 * took, MAX_REST_MS), signal);
};

/** Returns whether `work` finishes within `ms` milliseconds. Throws what `work` throws. */
export const finishesWithin = async (clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> => {
  const over = new AbortController();
  try {
    return await Promise.race([work.then(() => true), pause(clock, ms, over.signal).then(() => false)]);
  } finally {
    over.abort();
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
  const whole = Math.min(ceiling_ms, BASE_DELAY_MS * 2 ** Math.min(failures, 30));
  return Math.round(whole * (0.5 + random() / 2));
};

/** Returns the milliseconds before the next attempt; undefined means no retry, and the error is thrown. */
export type RetryPolicy = (error: unknown, failures: number) => number | undefined;

/** Returns the first success. Throws errors that are not retried, and the last error once the signal aborts. */
export const retry = async <T>(
  clock: Clock,
  ask: () => Promise<T>,
  again: RetryPolicy,
  signal?: AbortSignal,
): Promise<T> => {
  for (let failures = 1; ; failures++) {
    try {
      return await ask();
    } catch (error) {
      const wait = again(error, failures);
      if (wait === undefined) throw error;
      await pause(clock, wait, signal);
      if (signal?.aborted) throw error;
    }
  }
};

/** Returns a function that runs tasks one at a time: each starts when the previous one has ended, whether or not it failed. */
export const createSerialQueue = (): (<T>(work: () => Promise<T>) => Promise<T>) => {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work, work);
    last = mine.catch(() => {});
    return mine;
  };
};

/**
 * Returns a function that runs the work immediately, and once more if it was requested again in the meantime, however often. Runs never overlap.
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
