// Time for tests of the daemon: stands still until told. Where real processes and sockets take part, a test waits for them first and
// moves the time after.
import type { Timer } from "#base/clock.ts";
import { StillClock, settled } from "#test/wire/support.ts";

export { settled };

export class WatchedClock extends StillClock {
  /** The milliseconds of every `after`, in the order in which they were asked for. */
  readonly asked: number[] = [];

  override after(ms: number, run: () => void): Timer {
    this.asked.push(ms);
    return super.after(ms, run);
  }
}

/** Lets the clock run until `work` is over. Only for work that needs nothing of the real world. */
export const runUntil = async <T>(clock: StillClock, work: Promise<T>): Promise<T> => {
  let over = false;
  const watched = work.finally(() => {
    over = true;
  });
  watched.catch(() => {});
  while (!over) {
    await clock.advance(10);
    await settled();
  }
  return watched;
};
