// The clock of a process that can stand still.
import { systemClock } from "#base/clock.ts";

/** The system's clock, whose timers can be stopped, as they are in a process that stands still. */
export const haltingClock = () => {
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
    goOn: () => {
      halted = false;
      for (const run of waiting.splice(0)) run();
    },
  };
};
