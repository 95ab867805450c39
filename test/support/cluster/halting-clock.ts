// The clock of a process that can be paused.
import { systemClock } from "#base/clock.ts";

/** Returns the system clock with timers that can be stopped, as in a paused process. */
export const createHaltingClock = () => {
  let halted = false;
  const waiting: (() => void)[] = [];
  return {
    ...systemClock,
    after: (ms: number, run: () => void) =>
      systemClock.after(ms, () => {
        if (halted) waiting.push(run);
        else run();
      }),
    halt: () => {
      halted = true;
    },
    resume: () => {
      halted = false;
      for (const run of waiting.splice(0)) run();
    },
  };
};
