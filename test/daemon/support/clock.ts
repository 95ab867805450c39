// Time for tests of the daemon: stands still until told, but a test may let it run along with real processes and sockets.
import { StillClock, settled } from "#test/wire/support.ts";

export { StillClock, settled };

/** Lets the clock run, 10 ms for each turn of the event loop, until `work` is over. */
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
