// Time for daemon tests: stopped until advanced. With real processes and sockets, a test waits for them first and then advances the time.
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
  let over = false;
  const watched = work.finally(() => {
    over = true;
  });
  watched.catch(() => {});
  while (!over) {
    await clock.advance(10);
    await nextTurn();
  }
  return watched;
};
