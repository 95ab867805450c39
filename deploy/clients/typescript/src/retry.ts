// Decides which failures are retried, and after what delay.
import type { SlipwayError } from "./error.js";

export interface RetryOptions {
  /** Maximum number of retries of a failed request; 4 by default. */
  retries?: number;
  /** Maximum delay before a retry; 60,000 by default. If the server requests a longer one, the request fails instead. */
  maxPauseMs?: number;
}

/** The server was busy or restarting, or a proxy could not reach it; 0 is a lost connection. */
const RETRYABLE_STATUSES = new Set([0, 429, 502, 503, 504]);
const BASE_DELAY_MS = 250;
const MAX_DELAY_MS = 15_000;

/**
 * Returns whether a request can be retried. A request that changes something may have been processed before its response was lost; it is sent
 * again only if the server recognizes duplicates, or if 429 says that nothing was done.
 */
export const canRetry = ({ status }: SlipwayError, isRepeatable: boolean): boolean =>
  RETRYABLE_STATUSES.has(status) && (isRepeatable || status === 429);

/** Returns the delay before retry `attempt` (0 is the first), unless the server specifies one: it doubles, and half of it is random. */
export const getRetryDelay = (attempt: number, asked?: number): number => {
  if (asked !== undefined) return asked;
  const longest = Math.min(MAX_DELAY_MS, BASE_DELAY_MS * 2 ** Math.min(attempt, 16));
  return longest / 2 + (Math.random() * longest) / 2;
};

/** Resolves after the delay; rejects with the signal's reason if it aborts first. */
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
