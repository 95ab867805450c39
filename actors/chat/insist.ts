// Saying something to an actor until it has arrived: a turn's report is owed, so an overloaded server or a commit that could not be
// confirmed only delays it (facts/chats 1.5).
import type { Clock } from "#base/clock.ts";
import { kindOf } from "#base/errors.ts";
import { log } from "#base/log.ts";

const FIRST_MS = 250;
const LONGEST_MS = 30_000;

/** The answer, or `stale` once the signal is aborted or the chat is gone. */
export const insist = async <T>(clock: Clock, signal: AbortSignal, ask: () => Promise<T>): Promise<T | "stale"> => {
  for (let wait = FIRST_MS; ; wait = Math.min(wait * 2, LONGEST_MS)) {
    try {
      return await ask();
    } catch (error) {
      if (signal.aborted || kindOf(error) === "not_found") return "stale";
      log("chats").warn("a turn must say or read something again: {error}", { error });
      await pause(clock, wait, signal);
      if (signal.aborted) return "stale";
    }
  }
};

/** Waits, but not beyond the abort. */
export const pause = (clock: Clock, ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      timer.cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = clock.after(ms, done);
    signal.addEventListener("abort", done);
  });
