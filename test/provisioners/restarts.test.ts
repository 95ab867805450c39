// When a dead daemon is started again, as arithmetic.
import { expect, test } from "bun:test";
import { afterDeath, type Watched } from "#src/provisioners/local/restarts.ts";

/** The pauses before each try of a daemon that dies as soon as it is started. */
const pauses = (): number[] => {
  const found: number[] = [];
  let now = 1_000_000;
  let watched: Watched = { deaths: 0, since: now, retry_at: null };
  for (;;) {
    const next = afterDeath(watched, now);
    if (!next) return found;
    found.push((next.retry_at ?? 0) - now);
    now = next.retry_at ?? 0;
    watched = { ...next, since: now, retry_at: null };
  }
};

test("[LP-13] pauses double up to a minute, and end after ten deaths in a row", () => {
  expect(pauses()).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
});

test("[LP-13] the death of one that has lived for a minute begins a new row; a start that fails does not", () => {
  const good = { deaths: 7, since: 0, retry_at: null };
  expect(afterDeath(good, 60_000)).toEqual({ deaths: 1, since: 0, retry_at: 60_500 });
  expect(afterDeath(good, 59_999)?.deaths).toBe(8);
  expect(afterDeath({ ...good, retry_at: 90_000 }, 90_000)?.deaths).toBe(8);
  expect(afterDeath({ ...good, deaths: 10 }, 100)).toBeUndefined();
});
