// How the program handles signals.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { createSignalListener } from "#src/cli/signals.ts";

const setUpListener = () => {
  const calls: string[] = [];
  let now = 1000;
  const clock = { ...systemClock, monotonic: () => now };
  const signal = createSignalListener(clock, {
    stop: (name) => calls.push(`stop ${name}`),
    end: () => calls.push("end"),
  });
  const advance = (ms: number): void => {
    now += ms;
  };
  return { calls, signal, advance };
};

test("[CF-9] a second Ctrl-C ends the program immediately", () => {
  const { calls, signal, advance } = setUpListener();
  signal("SIGINT");
  advance(1000);
  signal("SIGINT");
  expect(calls).toEqual(["stop SIGINT", "end"]);
});

test("[CF-9] handles a Ctrl-C once, even if terminal, npm and bootstrap all pass it on", () => {
  const { calls, signal, advance } = setUpListener();
  for (const ms of [0, 5, 40]) {
    advance(ms);
    signal("SIGINT");
  }
  expect(calls).toEqual(["stop SIGINT"]);
});

test("[CF-9] a second SIGTERM changes nothing", () => {
  const { calls, signal, advance } = setUpListener();
  signal("SIGTERM");
  advance(1000);
  signal("SIGTERM");
  expect(calls).toEqual(["stop SIGTERM"]);
});
