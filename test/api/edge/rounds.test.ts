// Pings of open connections, with one timer for all.
import { expect, test } from "bun:test";
import { PingTimer } from "#src/api/http/ping.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const HUNDREDTH = 150;

const addSockets = (rounds: PingTimer<{ ping(): void }>, count: number) =>
  Array.from({ length: count }, () => {
    const one = { pings: 0, ping: () => void one.pings++ };
    rounds.add(one);
    return one;
  });

test("[SK-5] each of a thousand connections is pinged once in fifteen seconds, at most a fiftieth of them at a time", () => {
  const clock = new ManualClock();
  const rounds = new PingTimer(clock);
  const all = addSockets(rounds, 1000);
  for (let before = 0, slice = 0; slice < 100; slice++) {
    clock.advance(HUNDREDTH);
    const now = all.reduce((sum, { pings }) => sum + pings, 0);
    expect(now - before).toBeLessThanOrEqual(20);
    before = now;
  }
  expect(all.every(({ pings }) => pings === 1)).toBe(true);
  for (let slice = 0; slice < 300; slice++) clock.advance(HUNDREDTH);
  expect(all.every(({ pings }) => pings === 4)).toBe(true);
});

test("[SK-5] a single connection is not pinged for a whole period; a closed one is no longer pinged", () => {
  const clock = new ManualClock();
  const rounds = new PingTimer(clock);
  for (let again = 0; again < 3; again++) {
    const [one] = addSockets(rounds, 1);
    if (!one) throw new Error("nothing was opened");
    for (let slice = 0; slice < 99; slice++) clock.advance(HUNDREDTH);
    expect(one.pings).toBe(0);
    clock.advance(HUNDREDTH);
    expect(one.pings).toBe(1);
    expect([rounds.delete(one), rounds.delete(one), rounds.size]).toEqual([true, false, 0]);
    for (let slice = 0; slice < 200; slice++) clock.advance(HUNDREDTH);
    expect(one.pings).toBe(1);
  }
});
