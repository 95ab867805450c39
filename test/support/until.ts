// The only helper that polls, for conditions without an event. Everything else awaits an event, a gate or a clock.
import { setTimeout as rest } from "node:timers/promises";
import { scaleTimeout } from "./pace.ts";

type Truthy<T> = T extends false | 0 | "" | null | undefined ? never : T;

export type UntilOptions = {
  /** The condition, for the error message. */
  readonly what?: string;
  /** Timeout in milliseconds, extended on a slow machine; the test's own timeout should be longer. */
  readonly patience?: number;
  /** The condition may hold only briefly: never poll less often than at first. */
  readonly isBrief?: boolean;
};

const DEFAULT_TIMEOUT_MS = 60_000;
/** The pause as a share of the time waited so far: a long wait ends slightly later and uses less CPU. */
const PAUSE_SHARE = 1 / 20;
const BRIEF_MAX_PAUSE_MS = 20;
const MAX_PAUSE_MS = 60;

/**
 * Polls until `look` returns a truthy value, and returns that. The pause is 1 ms at first, doubles up to 20 ms, and then is a twentieth of
 * the time waited, at most 60 ms. Rethrows errors of `look`, and throws an Error with `what` on timeout.
 */
export const until = async <T>(look: () => T | Promise<T>, options: UntilOptions = {}): Promise<Truthy<T>> => {
  const { what = "what the test waits for", isBrief = false } = options;
  const patience = scaleTimeout(options.patience ?? DEFAULT_TIMEOUT_MS);
  const started = performance.now();
  for (let pause = 1; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    const seen = await look();
    if (seen) return seen as Truthy<T>;
    const waited = performance.now() - started;
    pause = Math.min(pause, isBrief ? BRIEF_MAX_PAUSE_MS : Math.max(BRIEF_MAX_PAUSE_MS, waited * PAUSE_SHARE));
    if (waited > patience) throw new Error(`timed out after ${patience} ms: ${what}`);
    await rest(pause);
  }
};
