// A node's clock compared with the database's.
import { expect, test } from "bun:test";
import { DatabaseClock } from "#src/cluster/database-clock.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const HOUR_MS = 3_600_000;

test("[CL-37] a clock that is an hour off uses the database's time, and durations are unchanged", () => {
  const machineClock = new ManualClock();
  const clock = new DatabaseClock(machineClock);
  const databaseTime = machineClock.now() - HOUR_MS;
  clock.correct(databaseTime + 0.25);
  expect(clock.now()).toBe(databaseTime);
  let timerCalls = 0;
  clock.after(1_000, () => timerCalls++);
  machineClock.advance(1_000);
  expect([clock.now(), clock.monotonic(), timerCalls]).toEqual([databaseTime + 1_000, machineClock.monotonic(), 1]);
});

test("[CL-37] a clock within a second is not adjusted, and is used again once it is corrected", () => {
  const machineClock = new ManualClock();
  const clock = new DatabaseClock(machineClock);
  clock.correct(machineClock.now() + 900);
  expect(clock.now()).toBe(machineClock.now());
  clock.correct(machineClock.now() + HOUR_MS);
  // Network latency changes nothing.
  clock.correct(machineClock.now() + HOUR_MS - 300);
  expect(clock.now()).toBe(machineClock.now() + HOUR_MS);
  clock.correct(machineClock.now() + 10);
  expect(clock.now()).toBe(machineClock.now());
});
