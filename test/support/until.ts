// The one way to wait for what no event tells of: look, and look again. Everything else awaits an event, a gate or a clock of its own.
import { setTimeout as rest } from "node:timers/promises";
import { scaled } from "./pace.ts";

type Truthy<T> = T extends false | 0 | "" | null | undefined ? never : T;

export type UntilOptions = {
  /** What is waited for, for the error. */
  readonly what?: string;
  /** Milliseconds after which it is given up, more on a slow machine; the test's own limit should be longer. */
  readonly patience?: number;
  /** It may be there for a moment only: never look less often than at first. */
  readonly isBrief?: boolean;
};

const PATIENCE_MS = 60_000;
/** Of what has been waited for already: a long wait ends a little later, and the processor is not asked for it again and again. */
const PAUSE_SHARE = 1 / 20;
const SHORT_PAUSE_MS = 20;
const MAX_PAUSE_MS = 60;

/**
 * Looks until `look` answers something true, and answers that. Between two looks the processor is free for what is waited for: 1 ms at first,
 * twice as long each time until 20 ms, then a twentieth of what has been waited for, 60 ms at most. What `look` throws is thrown, and so is
 * an Error that names `what` when patience has run out.
 */
export const until = async <T>(look: () => T | Promise<T>, options: UntilOptions = {}): Promise<Truthy<T>> => {
  const { what = "what the test waits for", isBrief = false } = options;
  const patience = scaled(options.patience ?? PATIENCE_MS);
  const begun = performance.now();
  for (let pause = 1; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    const seen = await look();
    if (seen) return seen as Truthy<T>;
    const waited = performance.now() - begun;
    pause = Math.min(pause, isBrief ? SHORT_PAUSE_MS : Math.max(SHORT_PAUSE_MS, waited * PAUSE_SHARE));
    if (waited > patience) throw new Error(`${what}: not within ${patience} ms`);
    await rest(pause);
  }
};
