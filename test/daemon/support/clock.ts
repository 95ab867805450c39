// The clock of daemon tests, which stands still until it is advanced. A test first waits for its real processes and sockets, then advances
// the clock.
import type { Timer } from "#base/clock.ts";
import { nextTurn, StillClock } from "#test/wire/support.ts";

export { nextTurn };

export class WatchedClock extends StillClock {
  /** The milliseconds of every `after`, in order. */
  readonly delays: number[] = [];

  override after(ms: number, run: () => void): Timer {
    this.delays.push(ms);
    return super.after(ms, run);
  }
}

/** Runs the clock until `work` is done. Only for work without real I/O. */
export const runUntil = async <T>(clock: StillClock, work: Promise<T>): Promise<T> => {
  let isDone = false;
  const result = work.finally(() => {
    isDone = true;
  });
  result.catch(() => {});
  while (!isDone) {
    await clock.advance(10);
    await nextTurn();
  }
  return result;
};
