// One timer serves all watched workspaces, and another one all pings, regardless of their number.
import { expect, test } from "bun:test";
import type { Timer } from "#base/clock.ts";
import { Heartbeat } from "#src/api/workspaces/heartbeat.ts";
import { SilenceTimer } from "#src/api/workspaces/silence-timer.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

/** Counts timers that are set and have neither fired nor been canceled. */
class CountingClock extends ManualClock {
  readonly live = new Set<object>();

  override every(ms: number, run: () => void): Timer {
    const key = {};
    this.live.add(key);
    const timer = super.every(ms, run);
    return {
      cancel: () => {
        this.live.delete(key);
        timer.cancel();
      },
    };
  }

  override after(ms: number, run: () => void): Timer {
    const key = {};
    this.live.add(key);
    const timer = super.after(ms, () => {
      this.live.delete(key);
      run();
    });
    return {
      cancel: () => {
        this.live.delete(key);
        timer.cancel();
      },
    };
  }
}

test("[WK-22] two thousand watched workspaces share one timer, which checks each of them once when due", () => {
  const clock = new CountingClock();
  const timer = new SilenceTimer(clock);
  const start = clock.now();
  const checked: number[] = [];
  const workspaces = Array.from({ length: 2_000 }, (_, i) => ({ i }));
  for (const workspace of workspaces.toReversed()) {
    timer.schedule(workspace, start + 5_000 + workspace.i * 10, () => checked.push(workspace.i));
    expect(clock.live.size).toBe(1);
  }
  clock.advance(4_999);
  expect(checked).toEqual([]);
  timer.remove(workspaces[3] as object);
  timer.schedule(workspaces[4] as object, start + 90_000, () => checked.push(-4));
  clock.advance(25_000);
  expect(checked.length).toBe(1_998);
  expect(new Set(checked).size).toBe(1_998);
  expect(clock.live.size).toBe(1);
  timer.remove(workspaces[4] as object);
  expect(clock.live.size).toBe(0);
  clock.advance(100_000);
  expect(checked).not.toContain(-4);
});

test("[WK-23] one timer pings two thousand streams every 15 seconds, and stops with the last stream", () => {
  const clock = new CountingClock();
  const heartbeat = new Heartbeat(clock);
  const pings = Array.from({ length: 2_000 }, () => 0);
  const unsubscribes = pings.map((_, i) => {
    if (i % 100 === 0) clock.advance(700);
    return heartbeat.join(() => {
      pings[i] = (pings[i] ?? 0) + 1;
    });
  });
  expect(clock.live.size).toBe(1);
  const before = [...pings];
  clock.advance(60_000);
  expect(new Set(pings.map((count, i) => count - (before[i] ?? 0)))).toEqual(new Set([4]));
  for (const unsubscribe of unsubscribes) unsubscribe();
  for (const unsubscribe of unsubscribes) unsubscribe();
  expect(clock.live.size).toBe(0);
});
