// Handles signals: the first one starts a graceful stop, a second Ctrl-C ends the program (rule CF-9).
import type { Clock } from "#base/clock.ts";

// A terminal sends Ctrl-C to every process of the job, and npm forwards it: that is one signal, not two.
const SAME_SIGNAL_WINDOW_MS = 300;

/** Returns the listener for SIGINT and SIGTERM. Calls `stop` for the first signal and `end` for a second Ctrl-C. */
export const createSignalListener = (
  clock: Clock,
  handlers: { stop(signal: string): void; end(): void },
): ((signal: string) => void) => {
  let firstAt: number | undefined;
  return (signal) => {
    const now = clock.monotonic();
    if (firstAt === undefined) {
      firstAt = now;
      handlers.stop(signal);
    } else if (signal === "SIGINT" && now - firstAt > SAME_SIGNAL_WINDOW_MS) handlers.end();
  };
};
