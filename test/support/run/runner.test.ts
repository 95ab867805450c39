// Tests of the runner: which failures count, which tests a change can affect, which files were slow, and how a test waits.
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { tempDirectory } from "../server.ts";
import { isUsableFolder } from "../temp-place.ts";
import { until } from "../until.ts";
import { findAffectedTests, listChangedFiles } from "./affected-tests.ts";
import { BINARY_SAMPLE, findMissingPaths, selectSample } from "./binary-sample.ts";
import { formatBusyShare, formatCost, formatSlowest } from "./figures.ts";
import { listSlowestFiles, readJunit, type TestCase } from "./junit.ts";
import { listOutsideFiles } from "./outside.ts";
import { isPrepared } from "./preparing.ts";
import { formatUnsteady, judgeRetries, listFailedFiles } from "./second-tries.ts";
import { listExpectedFiles, NOT_LOADED_TITLE, withUnreported } from "./unreported.ts";

const createCase = (file: string, title: string, outcome: TestCase["outcome"], seconds = 1): TestCase => ({
  file,
  title,
  outcome,
  seconds,
});

test("[RP-14] a test that fails and passes on the rerun makes its file flaky; other failures remain", () => {
  const firstRun = [
    createCase("a.test.ts", "x (seed 1)", "failed"),
    createCase("a.test.ts", "y", "passed"),
    createCase("b.test.ts", "x", "failed"),
    createCase("b.test.ts", "y", "failed"),
    createCase("c.test.ts", "gone", "failed"),
  ];
  const secondRun = [
    createCase("a.test.ts", "x (seed 2)", "passed"),
    createCase("b.test.ts", "x", "passed"),
    createCase("b.test.ts", "y", "failed"),
  ];
  const { cases, unsteady } = judgeRetries(firstRun, secondRun);
  expect(cases.map(({ outcome }) => outcome)).toEqual(["passed", "passed", "passed", "failed", "failed"]);
  expect(unsteady).toEqual([{ file: "a.test.ts", failures: [{ title: "x (seed 1)", reason: undefined }], tests: 2 }]);
  expect(formatUnsteady(unsteady[0]!, 7)[0]).toContain(
    "a.test.ts: 1 of 2 failed, then none of 2 (SLIPWAY_TEST_SEED=7)",
  );
});

test("[RP-43] an expected file that is missing from the report is a separate failure, which other files cannot hide", () => {
  const allFiles = ["test/a/x.test.ts", "test/a/y.test.ts", "test/ab/x.test.ts", "test/b.test.ts"];
  const listExpected = (paths: string[], ignored: string[] = []): string[] =>
    listExpectedFiles(allFiles, { paths, ignored });
  expect(listExpected([])).toEqual(allFiles);
  expect(listExpected([], ["test/b.test.ts"])).toEqual(allFiles.slice(0, 3));
  expect(listExpected(["test/a", "./test/b.test.ts"])).toEqual([
    "test/a/x.test.ts",
    "test/a/y.test.ts",
    "test/b.test.ts",
  ]);
  expect(listExpected(["test/b.test.ts"], ["test/b.test.ts"])).toEqual([]);
  expect(listExpected(["test/moved.test.ts"])).toEqual(["test/moved.test.ts"]);

  const reported = [createCase("test/a/x.test.ts", "x", "failed"), createCase("test/a/y.test.ts", "y", "skipped")];
  const firstRun = withUnreported(reported, ["test/a/x.test.ts", "test/a/y.test.ts", "test/b.test.ts"]);
  expect(firstRun.slice(0, 2)).toEqual(reported);
  expect(listFailedFiles(firstRun)).toEqual(["test/a/x.test.ts", "test/b.test.ts"]);
  const repaired = [createCase("test/a/x.test.ts", "x", "passed")];
  expect(listFailedFiles(judgeRetries(firstRun, repaired).cases)).toEqual(["test/b.test.ts"]);
  expect(
    listFailedFiles(judgeRetries(firstRun, [...repaired, createCase("test/b.test.ts", "b", "failed")]).cases),
  ).toEqual(["test/b.test.ts"]);
});

test("[RP-43] a file without results in the first run is judged by the second", () => {
  const firstRun = [
    ...withUnreported([], ["late.test.ts"]),
    createCase("hook.test.ts", "(unnamed)", "failed"),
    createCase("crash.test.ts", "(worker crashed)", "failed"),
  ];
  const secondRun = ["late", "hook", "crash"].flatMap((name) => [
    createCase(`${name}.test.ts`, "x", "passed"),
    createCase(`${name}.test.ts`, "y", name === "crash" ? "failed" : "passed"),
  ]);
  const { cases, unsteady } = judgeRetries(firstRun, secondRun);
  expect(cases).toEqual(secondRun);
  expect(unsteady).toEqual([
    { file: "late.test.ts", failures: [{ title: NOT_LOADED_TITLE, reason: undefined }], tests: 2 },
    { file: "hook.test.ts", failures: [{ title: "(unnamed)", reason: undefined }], tests: 2 },
  ]);
});

test("[RP-43] Bun reports no test of a file that fails to load, and reports skipped tests", async () => {
  using temp = tempDirectory();
  const files = {
    "good.test.ts": 'import { test } from "bun:test"; test("a", () => {});',
    "skipped.test.ts": 'import { describe, test } from "bun:test"; describe.skip("d", () => { test("a", () => {}); });',
    "late.test.ts": 'import { test } from "bun:test"; test("a", () => {}); await 1; throw new Error("late");',
    "broken.test.ts": 'import { test } from "bun:test"; test("a", () => {',
  };
  for (const [file, text] of Object.entries(files)) writeFileSync(join(temp.path, file), text);
  const report = join(temp.path, "report.xml");
  const flags = ["--parallel=2", "--no-isolate", "--reporter=junit", `--reporter-outfile=${report}`];
  const child = Bun.spawn([process.execPath, "test", ...flags], {
    cwd: temp.path,
    stdio: ["ignore", "ignore", "ignore"],
  });
  expect(await child.exited).not.toBe(0);
  const cases = withUnreported(readJunit(readFileSync(report, "utf8")), Object.keys(files));
  expect(listFailedFiles(cases).sort()).toEqual(["broken.test.ts", "late.test.ts"]);
  expect(cases.filter(({ title }) => title !== NOT_LOADED_TITLE).map(({ outcome }) => outcome)).toEqual([
    "passed",
    "skipped",
  ]);
});

test("[RP-44] a file that needs an unfinished program waits for it, and is skipped if the build failed", async () => {
  using temp = tempDirectory();
  const script = `const { listMissingNeeds, needs } = await import("${import.meta.dir}/../needs.ts");
    const isMissed = (variable) => listMissingNeeds().join().includes(variable);
    console.log(isMissed("SLIPWAY_TEST_NFPM"));
    console.log(needs.nfpm.found, needs.agents.found, isMissed("SLIPWAY_TEST_AGENTS"));`;
  const env = {
    ...process.env,
    SLIPWAY_TEST_PREPARING: temp.path,
    SLIPWAY_TEST_NFPM: "/nfpm",
    SLIPWAY_TEST_AGENTS: "/agents",
  };
  const child = Bun.spawn([process.execPath, "-e", script], { env, stdout: "pipe" });
  const lines = child.stdout.pipeThrough(new TextDecoderStream() as never).getReader();
  expect((await lines.read()).value).toBe("false\n" as never);
  writeFileSync(join(temp.path, "nfpm"), "ready: here");
  writeFileSync(join(temp.path, "agents"), "skip: no registry");
  expect((await lines.read()).value).toBe("true false true\n" as never);
  await child.exited;
  expect(isPrepared(temp.path, "counterpart", 0)).toBe(false);
});

test("[RP-15] a change selects the tests that import, start or name the changed file, and no others", () => {
  using temp = tempDirectory();
  const git = (...args: string[]): void => {
    const author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    expect(Bun.spawnSync(["git", ...author, ...args], { cwd: temp.path }).exitCode).toBe(0);
  };
  const writeSource = (file: string, text: string): void => {
    mkdirSync(dirname(join(temp.path, file)), { recursive: true });
    writeFileSync(join(temp.path, file), text);
  };
  const files = {
    "src/base/a.ts": "export const a = 1;",
    "src/api/b.ts": 'import { a } from "#base/a.ts"; export const b = a;',
    "src/main.ts": 'import "./api/b.ts";',
    "test/api/b.test.ts": 'import { b } from "#src/api/b.ts"; b;',
    "test/binary/start.test.ts": 'Bun.spawn(["bun", "src/main.ts"]);',
    "test/base/other.test.ts": "1;",
    "test/cli/page.test.ts": 'page("docs/cli.md");',
    "test/rules.test.ts": "1;",
  };
  git("init", "-q", "-b", "main");
  for (const [file, text] of Object.entries(files)) writeSource(file, text);
  writeSource("docs/cli.md", "x");
  git("add", "-A");
  git("commit", "-qm", "x");
  git("checkout", "-qb", "work");
  const listReached = (): string[] =>
    findAffectedTests(temp.path, Object.keys(files), listChangedFiles(temp.path, "main"));
  expect(listReached()).toEqual(["test/rules.test.ts"]);
  writeSource("docs/cli.md", "y");
  expect(listReached()).toEqual(["test/cli/page.test.ts", "test/rules.test.ts"]);
  git("commit", "-qam", "y");
  writeSource("src/base/a.ts", "export const a = 2;");
  expect(listReached()).toEqual([
    "test/api/b.test.ts",
    "test/binary/start.test.ts",
    "test/cli/page.test.ts",
    "test/rules.test.ts",
  ]);
  writeSource("package.json", "{}");
  expect(listReached()).toHaveLength(5);
  expect(() => listChangedFiles(temp.path, "nowhere")).toThrow("nowhere");
});

test("[RP-14] the report of a run has each test's file, outcome and time, and the slowest files", () => {
  const cases = readJunit(
    '<testsuite><testcase name="a" time="0.5" file="x.test.ts" /><testcase name="b" time="2" file="y.test.ts"><failure type="Error" message="late&#10;  by &lt;1 s">…</failure></testcase>' +
      '<testcase name="c" time="1" file="x.test.ts"><skipped/></testcase></testsuite>',
  );
  expect(cases.map(({ outcome }) => outcome)).toEqual(["passed", "failed", "skipped"]);
  expect(cases.map(({ reason }) => reason)).toEqual([undefined, "late by <1 s", undefined]);
  expect(listSlowestFiles(cases, 1)).toEqual([["y.test.ts", 2]]);
  expect(listSlowestFiles(cases, 9)).toEqual([
    ["y.test.ts", 2],
    ["x.test.ts", 1.5],
  ]);
  expect(formatSlowest(cases, 1)).toEqual(["           2.0 s  y.test.ts"]);
  expect(formatCost({ seconds: 61.26, processor: 100 })).toBe("(61.3 s, processor 100.0 s)");
  const times = (user: number, idle: number) => ({ times: { user, nice: 0, sys: 0, idle, irq: 0 } });
  expect(formatBusyShare([times(10, 10), times(0, 0)], [times(30, 10), times(10, 10)])).toContain("75 % busy");
});

test("[RP-40] the sample for the binary names existing tests that can run there, and a moved path is detected", async () => {
  const outside = await listOutsideFiles(fileURLToPath(new URL("../../..", import.meta.url)), "test/api");
  const chosen = selectSample(outside);
  expect(new Set(outside).isSupersetOf(new Set(chosen))).toBe(true);
  expect(chosen).toContain("test/api/pages.test.ts");
  expect(chosen.length).toBeLessThan(outside.length);
  expect(Object.values(BINARY_SAMPLE).every((paths) => paths.length > 0)).toBe(true);
  expect(findMissingPaths(outside)).toEqual([]);
  expect(findMissingPaths(outside, { pages: ["pages.test.ts"], gone: ["nowhere.test.ts"] })).toEqual([
    "nowhere.test.ts",
  ]);
});

test("[RP-13] `until` polls until the condition holds, throws the condition's error, and names what it waited for on timeout", async () => {
  let polls = 0;
  expect(await until(() => ++polls >= 3 && "found")).toBe("found");
  expect(polls).toBe(3);
  const throwBroken = (): boolean => {
    throw new Error("broken");
  };
  await expect(until(throwBroken)).rejects.toThrow("broken");
  await expect(until(() => false, { what: "the end of time", timeoutMs: 5 })).rejects.toThrow(
    /^timed out after \d+ ms: the end of time$/,
  );
});

test("[RP-14] test folders are in memory only if there is enough space and programs can run there", () => {
  using temp = tempDirectory();
  expect(isUsableFolder(temp.path, 1)).toBe(true);
  expect(isUsableFolder(temp.path, Number.MAX_SAFE_INTEGER)).toBe(false);
  expect(isUsableFolder(join(temp.path, "nowhere"), 1)).toBe(false);
});
