// Which failures are tried again, and after which pause.
import type { SlipwayError } from "./error.js";

export interface RetryOptions {
  /** How often a failed request is sent again; 4 unless given. */
  retries?: number;
  /** The longest pause before the next try. A server that asks for a longer one fails the request instead. 60,000 unless given. */
  maxPauseMs?: number;
}

/** The server was busy or restarting, or a proxy in front of it did not reach it; 0 is a connection that was lost. */
const PASSING = new Set([0, 429, 502, 503, 504]);
const FIRST_PAUSE_MS = 250;
const LONGEST_OWN_PAUSE_MS = 15_000;

/**
 * Whether the same request may be sent again. A request that changes something may have been carried out before its answer was lost; it is sent
 * again only when the server recognizes it, or when 429 says that nothing was done.
 */
export const mayRetry = ({ status }: SlipwayError, isRepeatable: boolean): boolean =>
  PASSING.has(status) && (isRepeatable || status === 429);

/** The pause before try `attempt` (0 is the first retry), unless the server asks for another: it doubles, with a random half. */
export const pauseBefore = (attempt: number, asked?: number): number => {
  if (asked !== undefined) return asked;
  const longest = Math.min(LONGEST_OWN_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempt, 16));
  return longest / 2 + (Math.random() * longest) / 2;
};

/** Resolves after the pause; rejects with the signal's reason when that fires first. */
export const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
