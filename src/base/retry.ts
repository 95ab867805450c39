// Waiting that can be cut short, trying again, and one piece of work after another.
import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

/** Resolves after `ms` milliseconds on the clock, or immediately when the signal fires. */
export const pause = (clock: Clock, ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const over = (): void => {
      timer.cancel();
      // A signal that lives as long as the program must not collect listeners.
      signal?.removeEventListener("abort", over);
      resolve();
    };
    const timer = clock.after(ms, over);
    signal?.addEventListener("abort", over);
  });

/** True when `work` is over within `ms` milliseconds; false when it is still running then. Throws what `work` throws. */
export const within = async (clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> => {
  const over = new AbortController();
  try {
    return await Promise.race([work.then(() => true), pause(clock, ms, over.signal).then(() => false)]);
  } finally {
    over.abort();
  }
};

/** Resolves when the signal fires. */
export const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

const FIRST_MS = 100;

/**
 * Milliseconds before try number `failures` + 1; `failures` counts from 0. Doubles with each up to the ceiling, and half of it is left to
 * chance, so that many that have failed together do not return at the same moment (rule DM-2).
 */
export const backoff = (failures: number, ceiling_ms: number, random: Random): number => {
  const whole = Math.min(ceiling_ms, FIRST_MS * 2 ** Math.min(failures, 30));
  return Math.round(whole * (0.5 + random() / 2));
};

/** Milliseconds before the next try, after so many failures; undefined: no retry, and the error is thrown. */
export type Again = (error: unknown, failures: number) => number | undefined;

/** The first answer. Throws what is not to be tried again, and the last error once the signal fires. */
export const retry = async <T>(clock: Clock, ask: () => Promise<T>, again: Again, signal?: AbortSignal): Promise<T> => {
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

/** A way in for work that must not meet: each piece begins when the one before it is over, whatever became of that. */
export const oneAtATime = (): (<T>(work: () => Promise<T>) => Promise<T>) => {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work, work);
    last = mine.catch(() => {});
    return mine;
  };
};

/**
 * Work that is asked for more often than it can be done: it begins immediately, and again when it was asked for in the meantime, however often. It
 * never meets itself, and must not reject.
 */
export const coalesced = (work: () => Promise<void>): (() => void) => {
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
