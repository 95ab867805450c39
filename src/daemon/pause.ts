// Waiting that can be cut short. Used all over the daemon: every wait ends when the daemon is told to stop.
import type { Clock } from "#base/clock.ts";

/** Resolves after `ms` milliseconds on the clock, or at once when the signal fires. */
export const pause = (clock: Clock, ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const over = (): void => {
      timer.cancel();
      // A signal that lives as long as the daemon must not collect listeners.
      signal?.removeEventListener("abort", over);
      resolve();
    };
    const timer = clock.after(ms, over);
    signal?.addEventListener("abort", over);
  });

/** True when `work` is over within `ms` milliseconds; false when it still goes on then. Throws what `work` throws. */
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
