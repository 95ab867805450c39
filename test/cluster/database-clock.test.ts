// A node's clock compared with the database's.
import { expect, test } from "bun:test";
import { DatabaseClock } from "#src/cluster/database-clock.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const HOUR_MS = 3_600_000;

test("[CL-37] a clock that is an hour off uses the database's time, and durations are unchanged", () => {
  const own = new ManualClock();
  const clock = new DatabaseClock(own);
  const database = own.now() - HOUR_MS;
  clock.correct(database + 0.25);
  expect(clock.now()).toBe(database);
  let rung = 0;
  clock.after(1_000, () => rung++);
  own.advance(1_000);
  expect([clock.now(), clock.monotonic(), rung]).toEqual([database + 1_000, own.monotonic(), 1]);
});

test("[CL-37] a clock within a second is not adjusted, and is used again once it is corrected", () => {
  const own = new ManualClock();
  const clock = new DatabaseClock(own);
  clock.correct(own.now() + 900);
  expect(clock.now()).toBe(own.now());
  clock.correct(own.now() + HOUR_MS);
  // Network latency changes nothing.
  clock.correct(own.now() + HOUR_MS - 300);
  expect(clock.now()).toBe(own.now() + HOUR_MS);
  clock.correct(own.now() + 10);
  expect(clock.now()).toBe(own.now());
});
