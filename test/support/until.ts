// The only helper that polls, for conditions without an event. Everything else awaits an event, a signal of the test or a clock.
import { setTimeout as sleep } from "node:timers/promises";
import { scaleTimeout } from "./pace.ts";

type Truthy<T> = T extends false | 0 | "" | null | undefined ? never : T;

export type UntilOptions = {
  /** Describes the condition, for the error message. */
  readonly what?: string;
  /** Timeout in milliseconds, extended on a slow machine; the test's own timeout should be longer. */
  readonly timeoutMs?: number;
  /** Set if the condition may hold only briefly: the pause between polls then stays at most 20 ms. */
  readonly isBrief?: boolean;
};

const DEFAULT_TIMEOUT_MS = 60_000;
/** The pause as a share of the time waited so far: a long wait ends slightly later and uses less CPU. */
const PAUSE_SHARE = 1 / 20;
const BRIEF_MAX_PAUSE_MS = 20;
const MAX_PAUSE_MS = 60;

/**
 * Polls until `poll` returns a truthy value, and returns that. The pause is 1 ms at first, doubles up to 20 ms, and then is a twentieth of
 * the time waited, at most 60 ms. Rethrows errors of `poll`, and throws an Error with `what` on timeout.
 */
export const until = async <T>(poll: () => T | Promise<T>, options: UntilOptions = {}): Promise<Truthy<T>> => {
  const { what = "what the test waits for", isBrief = false } = options;
  const timeoutMs = scaleTimeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  const startedAt = performance.now();
  for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    const result = await poll();
    if (result) return result as Truthy<T>;
    const waitedMs = performance.now() - startedAt;
    pauseMs = Math.min(pauseMs, isBrief ? BRIEF_MAX_PAUSE_MS : Math.max(BRIEF_MAX_PAUSE_MS, waitedMs * PAUSE_SHARE));
    if (waitedMs > timeoutMs) throw new Error(`timed out after ${timeoutMs} ms: ${what}`);
    await sleep(pauseMs);
  }
};
