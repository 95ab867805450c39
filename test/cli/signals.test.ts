// How the program handles signals.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { createSignalListener } from "#src/cli/signals.ts";

const setUp = () => {
  const acts: string[] = [];
  let now = 1000;
  const clock = { ...systemClock, monotonic: () => now };
  const signal = createSignalListener(clock, {
    stop: (name) => acts.push(`stop ${name}`),
    end: () => acts.push("end"),
  });
  const later = (ms: number): void => {
    now += ms;
  };
  return { acts, signal, later };
};

test("[CF-9] a second Ctrl-C ends the program immediately", () => {
  const { acts, signal, later } = setUp();
  signal("SIGINT");
  later(1000);
  signal("SIGINT");
  expect(acts).toEqual(["stop SIGINT", "end"]);
});

test("[CF-9] one Ctrl-C received from the terminal, npm and the bootstrap is handled once", () => {
  const { acts, signal, later } = setUp();
  for (const ms of [0, 5, 40]) {
    later(ms);
    signal("SIGINT");
  }
  expect(acts).toEqual(["stop SIGINT"]);
});

test("[CF-9] a second SIGTERM changes nothing", () => {
  const { acts, signal, later } = setUp();
  signal("SIGTERM");
  later(1000);
  signal("SIGTERM");
  expect(acts).toEqual(["stop SIGTERM"]);
});
