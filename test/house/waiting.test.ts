// How tests wait: for events, signals of the test and clocks, and otherwise with `until` of test/support.
import { expect, test } from "bun:test";
import { readPage } from "#test/support/documents.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

/** Files with pauses, and the reason. */
const PAUSES: Readonly<Record<string, string>> = {
  "test/bench/": "benchmarks measure durations",
  "test/crash/": "a server is killed after a random time, and load has a rate",
  "test/db/proxy-store.ts": "a network between server and store that has random delays",
  "test/api/agents/slow-socket.ts": "only time without reading fills every buffer",
  "test/api/chats/random/random-run.ts": "the timeout of a run that hangs",
  "test/support/models/talking-model.ts": "a model that answers slowly, so that it can be disconnected and interrupted",
  "test/mcp/session-host.ts": "a slow tool that reports progress",
  "test/support/until.ts": "this is where tests wait",
  "test/support/run/preparing.ts": "it waits before a process starts its tests",
  "test/run.ts": "the runner is not a test",
};

const SLEEPS = /\bBun\.sleep(Sync)?\(|(?<![.\w"'`(])setTimeout\(|\bsleep\(systemClock\b/;
const OWN_LOOPS =
  /\b(?:const|function) (?:until|eventually|waitUntil) ?[=(<]|while \([^\n]*\) (?:await new Promise[^\n]*set(?:Immediate|Timeout)|\{\s*await new Promise[^\n]*set(?:Immediate|Timeout)[^\n]*;\s*\})/;

const files = [...new Bun.Glob("**/*.{ts,tsx}").scanSync({ cwd: `${import.meta.dir}/..` })].map(
  (file) => `test/${file}`,
);
const isAllowed = (file: string): boolean => Object.keys(PAUSES).some((path) => file.startsWith(path));
const stripStrings = (text: string): string =>
  text.replace(/\/\/.*|"(?:[^"\\\n]|\\.)*"|\/(?:[^/\\\n]|\\.)+\/[a-z]*(?=[,;)\]])/g, '""');

test("[RP-13] no test sleeps, and none has its own polling loop", () => {
  const sources = files
    .filter((file) => !isAllowed(file))
    .map((file) => ({ file, text: stripStrings(readPage(file)) }));
  expect(sources.filter(({ text }) => SLEEPS.test(text)).map(({ file }) => file)).toEqual([]);
  expect(sources.filter(({ text }) => OWN_LOOPS.test(text)).map(({ file }) => file)).toEqual([]);
});

test("[RP-13] every allowed pause still exists", () => {
  expect(
    Object.keys(PAUSES).filter(
      (path) => !files.some((file) => (file.startsWith(path) && SLEEPS.test(readPage(file))) || file === path),
    ),
  ).toEqual([]);
});

test("[RP-13] advancing the test clock fires a timer that is rescheduled for the remaining time", () => {
  const clock = new ManualClock();
  let firedCount = 0;
  for (let round = 0; round < 50; round += 1) {
    const due = clock.monotonic() + 25 / 3;
    const reschedule = (): void => {
      firedCount += 1;
      if (firedCount > 1_000) throw new Error("the timer was rescheduled too often");
      if (clock.monotonic() < due) clock.after(due - clock.monotonic(), reschedule);
    };
    clock.after(due - clock.monotonic(), reschedule);
    clock.advance(9.7);
    expect(clock.monotonic()).toBeGreaterThan(due);
    expect(Number.isInteger(clock.now())).toBe(true);
  }
  expect(firedCount).toBeLessThan(101);
});
