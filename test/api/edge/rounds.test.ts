// Pings of open connections, with one timer for all.
import { expect, test } from "bun:test";
import { PingTimer } from "#src/api/http/ping.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const HUNDREDTH_OF_PERIOD_MS = 150;

const addSockets = (pingTimer: PingTimer<{ ping(): void }>, count: number) =>
  Array.from({ length: count }, () => {
    const socket = { pings: 0, ping: () => void socket.pings++ };
    pingTimer.add(socket);
    return socket;
  });

test("[SK-5] pings each of a thousand connections once in 15 seconds, at most a fiftieth of them at a time", () => {
  const clock = new ManualClock();
  const pingTimer = new PingTimer(clock);
  const sockets = addSockets(pingTimer, 1000);
  for (let previousTotal = 0, slice = 0; slice < 100; slice++) {
    clock.advance(HUNDREDTH_OF_PERIOD_MS);
    const total = sockets.reduce((sum, { pings }) => sum + pings, 0);
    expect(total - previousTotal).toBeLessThanOrEqual(20);
    previousTotal = total;
  }
  expect(sockets.every(({ pings }) => pings === 1)).toBe(true);
  for (let slice = 0; slice < 300; slice++) clock.advance(HUNDREDTH_OF_PERIOD_MS);
  expect(sockets.every(({ pings }) => pings === 4)).toBe(true);
});

test("[SK-5] pings a single connection after a whole period, and a closed one no more", () => {
  const clock = new ManualClock();
  const pingTimer = new PingTimer(clock);
  for (let round = 0; round < 3; round++) {
    const [socket] = addSockets(pingTimer, 1);
    if (!socket) throw new Error("no socket was added");
    for (let slice = 0; slice < 99; slice++) clock.advance(HUNDREDTH_OF_PERIOD_MS);
    expect(socket.pings).toBe(0);
    clock.advance(HUNDREDTH_OF_PERIOD_MS);
    expect(socket.pings).toBe(1);
    expect([pingTimer.delete(socket), pingTimer.delete(socket), pingTimer.size]).toEqual([true, false, 0]);
    for (let slice = 0; slice < 200; slice++) clock.advance(HUNDREDTH_OF_PERIOD_MS);
    expect(socket.pings).toBe(1);
  }
});
