// How tests wait: for events, gates and clocks, and otherwise with `until` of test/support.
import { expect, test } from "bun:test";
import { readPage } from "#test/support/documents.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

/** Where a pause is what the test is about, with the reason. */
const PAUSES: Readonly<Record<string, string>> = {
  "test/bench/": "benchmarks measure stretches of time",
  "test/crash/": "a server is killed after a while that is drawn at random, and load comes at a pace",
  "test/db/proxy-store.ts": "a network between server and store that is slow at random",
  "test/api/agents/slow-socket.ts": "only a while without reading tells that every buffer is full",
  "test/api/chats/random/random-run.ts": "the limit of a run that has got stuck",
  "test/support/models/talking-model.ts":
    "a model that speaks at the pace of one, so that it can be cut off and interrupted",
  "test/mcp/session-host.ts": "a tool that takes its time and reports progress",
  "test/support/until.ts": "this is where tests wait",
  "test/support/run/preparing.ts": "no test runs yet while a process waits for a program that is being prepared",
  "test/run.ts": "the runner is not a test",
};

const SLEEPS = /\bBun\.sleep(Sync)?\(|(?<![.\w"'`(])setTimeout\(|\bsleep\(systemClock\b/;
const COPIES =
  /\b(?:const|function) (?:until|eventually|waitUntil) ?[=(<]|while \([^\n]*\) (?:await new Promise[^\n]*set(?:Immediate|Timeout)|\{\s*await new Promise[^\n]*set(?:Immediate|Timeout)[^\n]*;\s*\})/;

const files = [...new Bun.Glob("**/*.{ts,tsx}").scanSync({ cwd: `${import.meta.dir}/..` })].map(
  (file) => `test/${file}`,
);
const isAllowed = (file: string): boolean => Object.keys(PAUSES).some((place) => file.startsWith(place));
const stripStrings = (text: string): string =>
  text.replace(/\/\/.*|"(?:[^"\\\n]|\\.)*"|\/(?:[^/\\\n]|\\.)+\/[a-z]*(?=[,;)\]])/g, '""');

test("[RP-13] no test sleeps, and none has its own polling loop", () => {
  const sources = files
    .filter((file) => !isAllowed(file))
    .map((file) => ({ file, text: stripStrings(readPage(file)) }));
  expect(sources.filter(({ text }) => SLEEPS.test(text)).map(({ file }) => file)).toEqual([]);
  expect(sources.filter(({ text }) => COPIES.test(text)).map(({ file }) => file)).toEqual([]);
});

test("[RP-13] every allowed pause still exists", () => {
  expect(
    Object.keys(PAUSES).filter(
      (place) => !files.some((file) => (file.startsWith(place) && SLEEPS.test(readPage(file))) || file === place),
    ),
  ).toEqual([]);
});

test("[RP-13] advancing the test clock fires a timer that is rescheduled for the remaining time", () => {
  const clock = new ManualClock();
  let looks = 0;
  for (let round = 0; round < 50; round += 1) {
    const due = clock.monotonic() + 25 / 3;
    const ring = (): void => {
      looks += 1;
      if (looks > 1_000) throw new Error("it never comes");
      if (clock.monotonic() < due) clock.after(due - clock.monotonic(), ring);
    };
    clock.after(due - clock.monotonic(), ring);
    clock.advance(9.7);
    expect(clock.monotonic()).toBeGreaterThan(due);
    expect(Number.isInteger(clock.now())).toBe(true);
  }
  expect(looks).toBeLessThan(101);
});
