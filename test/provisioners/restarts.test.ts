// When a daemon that died is restarted.
import { expect, test } from "bun:test";
import { scheduleRestart, type WatchedDaemon } from "#src/provisioners/local/restarts.ts";

/** Returns the delays before each restart of a daemon that dies immediately. */
const listDelays = (): number[] => {
  const delays: number[] = [];
  let now = 1_000_000;
  let watched: WatchedDaemon = { deaths: 0, since: now, retry_at: null };
  for (;;) {
    const next = scheduleRestart(watched, now);
    if (!next) return delays;
    delays.push((next.retry_at ?? 0) - now);
    now = next.retry_at ?? 0;
    watched = { ...next, since: now, retry_at: null };
  }
};

test("[LP-13] delays double up to a minute, and restarts end after ten deaths in a row", () => {
  expect(listDelays()).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
});

test("[LP-13] the count of deaths restarts after a daemon has run for a minute, but not after a failed start", () => {
  const watched = { deaths: 7, since: 0, retry_at: null };
  expect(scheduleRestart(watched, 60_000)).toEqual({ deaths: 1, since: 0, retry_at: 60_500 });
  expect(scheduleRestart(watched, 59_999)?.deaths).toBe(8);
  expect(scheduleRestart({ ...watched, retry_at: 90_000 }, 90_000)?.deaths).toBe(8);
  expect(scheduleRestart({ ...watched, deaths: 10 }, 100)).toBeUndefined();
});
