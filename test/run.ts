// Runs `npm test`: builds the binary, then runs every test in parallel with lint, types and unused code. Next to that, it repeats some
// tests on PostgreSQL and against the binary, one file at a time. The last line is `N passed, N failed` (`, N skipped` if any), summed
// from the test reports plus one for each step that is not a test. Options:
// - --only lint,unit: runs only these steps
// - --changed: runs only tests that this branch's changes can affect, and does not build the binary
// - --slowest N: number of slow files to list
// - --since REVISION: what --changed compares with; main by default
// - --all-binary: runs all API tests that can run against the binary, as before a release
// - --record: records how long each file takes (test/support/run/timings.json), so that the longest files start first
// Leaves no process behind. Fails and names the test if a process is left. Files with a few failed tests run again separately: tests that
// then pass are listed as flaky at the end, and too many such files fail the run.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, constants, cpus, setPriority, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { listMissingNeeds } from "./support/needs.ts";
import { measurePace, PACE_VARIABLE, TEST_TIMEOUT_MS } from "./support/pace.ts";
import { findAffectedTests, listChangedFiles } from "./support/run/affected-tests.ts";
import { BINARY_ONLY, listBinaryFiles, selectSample } from "./support/run/binary-sample.ts";
import { type Cost, formatBusyShare, formatCost, formatSlowest, measureCost } from "./support/run/figures.ts";
import { findSkipReason, readJunit, type TestCase } from "./support/run/junit.ts";
import { describeLocation, RUN_LEDGER, readNotedFolders } from "./support/run/ledger.ts";
import { endLeftovers, findLeftovers, type Leftover, RUN_MARK } from "./support/run/leftovers.ts";
import { listOutsideFiles } from "./support/run/outside.ts";
import {
  formatReason,
  formatUnsteady,
  judgeRetries,
  listFailedFiles,
  MAX_UNSTEADY,
  type UnsteadyFile,
} from "./support/run/second-tries.ts";
import { listExpectedFiles, withUnreported } from "./support/run/unreported.ts";
import { chooseTempFolder } from "./support/temp-place.ts";
import { TYPE_CHECKER, TYPE_CHECKER_ENV } from "./support/type-checker.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BINARY = join(ROOT, "dist", "slipway");
/** Last recorded duration of each test file, in milliseconds. */
const TIMINGS = "test/support/run/timings.json";
/** A daemon checks for its folder every 2 s, and then shuts down properly. */
const SHUTDOWN_GRACE_MS = 15_000;
const ADVISORIES_MS = 30_000;
const ADVISORY_LINES = 20;
/** If more files than this fail, they have a common cause and are not retried. */
const MAX_RETRIED_FILES = 16;
/** Processes that share the files of a step. Most tests wait for a server, a daemon or a disk more than half of the time. */
const WORKERS = Math.min(4, availableParallelism() + 1);
/** Processes for the steps next to the large one. With one process, both take equally long. */
const OTHER_STEPS_WORKERS = 1;
const TEMP = chooseTempFolder();
/** One seed for all random tests, in both runs. */
const SEED = Number(process.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

interface Step {
  name: string;
  command: string[];
  env?: Readonly<Record<string, string>>;
  /** Arguments of `bun test`. The step then counts its tests instead of itself. */
  tests?: string[];
  /** Test files that another step runs. */
  ignored?: readonly string[];
  /** A step that must succeed first: for example, an old binary must not be tested if its build failed. */
  needsStep?: string;
}

interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

/**
 * Tests that also run on PostgreSQL: the ones most dependent on a database's dialect and on concurrency (lists, searches, reports, guards on
 * other rows, timers, queues), and the ones that kill servers. `bun run test:postgres` runs all API tests.
 */
const ON_POSTGRES = [
  ...["organizations", "template-versions", "insights/reports.test.ts"],
  ...["audit/trail.test.ts", "connections/reported.test.ts", "notifications/inbox.test.ts", "users/users.test.ts"],
  ...["groups/quota.test.ts", "workspaces/list.test.ts", "workspaces/dormancy.test.ts", "templates/story.test.ts"],
  ...["chats/list.test.ts", "chats/costs.test.ts", "chats/races.test.ts", "chats/random"],
]
  .map((path) => `test/api/${path}`)
  .concat("test/crash/server-kills.test.ts", "test/crash/chats/server-chats.test.ts");

/** Tests that also run on three active nodes behind a round-robin proxy, where any node must find the owner of a shard. */
const ON_ACTIVE_NODES = ["workspaces/create.test.ts", "chats/story.test.ts", "tasks", "agents/reinit.test.ts"].map(
  (path) => `test/api/${path}`,
);

const { values: options } = parseArgs({
  options: {
    only: { type: "string" },
    changed: { type: "boolean" },
    since: { type: "string", default: "main" },
    slowest: { type: "string", default: "10" },
    "all-binary": { type: "boolean" },
    record: { type: "boolean" },
  },
});
// Tests that access the server's internals have already run in the step `unit`.
const OUTSIDE = await listOutsideFiles(ROOT, "test/api");
/** Every test file. The folder is the one in bunfig.toml. */
const TEST_FILES = [...new Bun.Glob("test/**/*.test.{ts,tsx}").scanSync({ cwd: ROOT })].sort();

const STEPS: Step[] = [
  { name: "lint", command: ["node_modules/@biomejs/biome/bin/biome", "check", "."] },
  { name: "types", command: [...TYPE_CHECKER], env: TYPE_CHECKER_ENV },
  // The generated types are part of the project, although Git ignores them.
  { name: "unused", command: ["node_modules/knip/bin/knip-bun.js", "--no-gitignore"] },
  { name: "build", command: ["src/build.ts"] },
  { name: "unit", command: ["test"], tests: [] },
  ...(process.env.SLIPWAY_TEST_POSTGRES
    ? [
        { name: "postgres", command: ["test"], tests: ON_POSTGRES, env: { SLIPWAY_TEST_DATABASE: "postgres" } },
        {
          name: "active",
          command: ["test"],
          tests: ON_ACTIVE_NODES,
          env: { SLIPWAY_TEST_DATABASE: "postgres", SLIPWAY_TEST_NODES: "active" },
        },
      ]
    : []),
  {
    name: "binary",
    command: ["test"],
    tests: [
      ...(options["all-binary"] ? OUTSIDE : selectSample(OUTSIDE)),
      ...listBinaryFiles(readdirSync(join(ROOT, "test/binary"))),
    ],
    env: { SLIPWAY_TEST_BINARY: BINARY },
    needsStep: "build",
  },
];

/** Generates the types that checks and tests read. They are not committed. */
const ROUTES: Step = { name: "routes", command: ["test/api/routes-table.ts"] };

/** The steps of `--changed`, unless others are named. */
const QUICK_STEPS = ["lint", "types", "unused", "unit"];

const scratch = mkdtempSync(join(tmpdir(), "slipway-tests-"));
const runMark = `${process.pid}-${crypto.randomUUID()}`;
const ledger = join(scratch, "folders");
const unsteady: UnsteadyFile[] = [];
const total: Tally = { passed: 0, failed: 0, skipped: 0 };
const summary: string[] = [];
const broken = new Set<string>();
const running = new Set<Bun.Subprocess>();

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupt());

const processors = cpus();
/** CI multiplies timeouts at least by this: the machine is measured while nothing else runs, and several tests share its cores later. */
const MIN_CI_PACE = 3;
/** By how much timeouts are longer than on the reference machine. */
const pace = Math.max(await measurePace(), process.env.CI ? MIN_CI_PACE : 1);

try {
  const chosen = selectSteps();
  if (pace > 1) printLine(`Timeouts are ${pace.toFixed(1)} times as long on this machine.`);
  if (chosen.some(({ tests }) => tests)) for (const text of listMissingNeeds()) printLine(text);
  // Tests start when the binary is built. Checks of the source tree run next to the build and to the tests.
  const checks = chosen.filter((step) => !step.tests && !isBuild(step));
  const routes = runCheck(ROUTES);
  const checked = routes.then(() => Promise.all(checks.map(runCheck)));
  await Promise.all([routes, ...chosen.filter(isBuild).map(runCheck)]);
  // The registry may be slow, so the request starts early.
  const advisories = process.env.CI ? readAdvisories() : [];
  const isBuilt = chosen.some(({ name }) => name === "build") && !broken.has("build");
  const isBinaryTested = isBuilt && chosen.some(({ name }) => name === "binary");
  const testSteps = chosen.filter(({ tests }) => tests);
  for (const step of testSteps) {
    // Servers and daemons in separate processes start with a third of the CPU time if they are compiled.
    if (isBuilt) step.env = { SLIPWAY_TEST_PROGRAM: BINARY, ...step.env };
    if (isBinaryTested && step.name === "unit") step.ignored = BINARY_ONLY;
  }
  const [unit, others] = [testSteps.filter(isUnit), testSteps.filter((step) => !isUnit(step))];
  await Promise.all([
    checked,
    runSequentially(unit, WORKERS),
    runSequentially(others, unit.length > 0 ? OTHER_STEPS_WORKERS : WORKERS),
  ]);
  await checkLeftovers();
  reportFlaky();
  summary.push(...(await advisories), formatBusyShare(processors, cpus()));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
printLine(["", ...summary, "", formatTally(total)].join("\n"));
process.exit(total.failed === 0 ? 0 : 1);

function selectSteps(): Step[] {
  const names = options.only?.split(",") ?? (options.changed ? QUICK_STEPS : undefined);
  const unknown = names?.filter((name) => !STEPS.some((step) => step.name === name)) ?? [];
  if (unknown.length > 0) {
    printLine(`--only takes ${STEPS.map((step) => step.name).join(", ")}; got ${unknown.join(", ")}`);
    process.exit(2);
  }
  const chosen = STEPS.filter((step) => names?.includes(step.name) ?? true);
  return options.changed ? chosen.map(limitToAffected) : chosen;
}

/** Restricts the step to tests that this branch's changes can affect. */
function limitToAffected(step: Step): Step {
  if (!step.tests) return step;
  const sources = [...new Bun.Glob("{src,actors,db,test}/**/*.{ts,tsx}").scanSync({ cwd: ROOT })];
  const changed = listChangedFiles(ROOT, options.since);
  const affected = findAffectedTests(ROOT, sources, changed);
  const selected =
    step.tests.length === 0
      ? affected
      : affected.filter((file) => step.tests?.some((prefix) => file.startsWith(prefix)));
  printLine(
    `${changed.length} files have changed since ${options.since}: ${selected.length} test files can be affected`,
  );
  return { ...step, tests: selected.map((file) => `./${file}`) };
}

/** Runs a step that is not a test, next to other steps. Prints its output at the end. */
async function runCheck(step: Step): Promise<void> {
  const startedAt = performance.now();
  const child = spawnBun(step.command, step.env, "pipe");
  if (!isBuild(step)) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout as ReadableStream).text(),
    new Response(child.stderr as ReadableStream).text(),
    awaitExit(child),
  ]);
  printLine(`\n== ${step.name}\n${output}${errors}`.trimEnd());
  recordResult(
    step,
    { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: 0 },
    measureCost(child, startedAt),
  );
}

function isBuild({ name }: Step): boolean {
  return name === "build";
}

function isUnit({ name }: Step): boolean {
  return name === "unit";
}

async function runSequentially(steps: readonly Step[], workers: number): Promise<void> {
  for (const step of steps) {
    if (step.needsStep && broken.has(step.needsStep)) skipStep(step, step.needsStep);
    else await runStep(step, workers);
  }
}

async function runStep(step: Step, workers: number): Promise<void> {
  printLine(`\n== ${step.name}`);
  const report = join(scratch, `${step.name}.xml`);
  const [code, cost] = await runTests(step, report, workers);
  const expected = listExpectedFiles(TEST_FILES, { paths: step.tests ?? [], ignored: step.ignored ?? [] });
  const cases = withUnreported(readCases(report), expected);
  recordResult(step, countTests(await retryFailed(step, cases), code), cost);
  summary.push(...formatSlowest(cases, Number(options.slowest)));
}

/** Counts the step and adds its summary line. */
function recordResult(step: Step, tally: Tally, cost: Cost): void {
  if (tally.failed > 0) broken.add(step.name);
  total.passed += tally.passed;
  total.failed += tally.failed;
  total.skipped += tally.skipped;
  summary.push(
    `${tally.failed === 0 ? "ok    " : "FAILED"}  ${step.name.padEnd(8)} ${formatTally(tally)}  ${formatCost(cost)}`,
  );
}

/** Returns the registry's advisories about used packages, as a warning: they must not fail a run without any change. */
async function readAdvisories(): Promise<string[]> {
  const child = Bun.spawn([process.execPath, "audit"], { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
  const timeout = setTimeout(() => child.kill(), ADVISORIES_MS);
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  clearTimeout(timeout);
  const lines = `${output}${errors}`.trim().split("\n").slice(-ADVISORY_LINES);
  if (code === 0) return ["        advisories: none"];
  return ["        advisories (a warning):", ...lines.map((text) => `          ${text}`)];
}

function skipStep(step: Step, needed: string): void {
  total.failed += 1;
  summary.push(`FAILED  ${step.name.padEnd(8)} not run, because ${needed} failed`);
}

async function runTests(step: Step, report: string, workers: number): Promise<[code: number, cost: Cost]> {
  const startedAt = performance.now();
  const flags = [
    "--only-failures",
    `--timeout=${Math.ceil(TEST_TIMEOUT_MS * pace)}`,
    "--reporter=junit",
    `--reporter-outfile=${report}`,
  ];
  const ignoreFlags = step.ignored ? [`--path-ignore-patterns={${step.ignored.join(",")}}`] : [];
  const timingFlags = [`--timings=${TIMINGS}`, ...(options.record && step.name === "unit" ? ["--update-timings"] : [])];
  const parallelFlags = workers > 1 ? [`--parallel=${workers}`, "--no-isolate", ...timingFlags] : [];
  const child = spawnBun(
    [...step.command, ...parallelFlags, ...ignoreFlags, ...flags, ...(step.tests ?? [])],
    step.env,
    "inherit",
  );
  return [await awaitExit(child), measureCost(child, startedAt)];
}

async function awaitExit(child: Bun.Subprocess): Promise<number> {
  await child.exited;
  running.delete(child);
  return child.exitCode ?? 1;
}

function spawnBun(
  args: string[],
  env: Readonly<Record<string, string>> = {},
  output: "inherit" | "pipe",
): Bun.Subprocess {
  const child = Bun.spawn([process.execPath, "--no-env-file", ...args], {
    cwd: ROOT,
    stdio: ["ignore", output, output],
    // Tools that look for `bun` find this one.
    env: {
      ...process.env,
      PATH: dirname(process.execPath) + delimiter + process.env.PATH,
      SLIPWAY_TEST_SEED: String(SEED),
      [PACE_VARIABLE]: String(pace),
      TMPDIR: TEMP,
      [RUN_MARK]: runMark,
      [RUN_LEDGER]: ledger,
      ...env,
    },
  });
  running.add(child);
  return child;
}

/** Returns the tests of a report; an empty list without a report. */
function readCases(report: string): TestCase[] {
  try {
    return readJunit(readFileSync(report, "utf8"));
  } catch {
    summary.push("        no test report was written");
    return [];
  }
}

/** Returns the same tests, with the results of a second run if a few failed. */
async function retryFailed(step: Step, cases: TestCase[]): Promise<{ cases: readonly TestCase[]; recovered: boolean }> {
  const files = listFailedFiles(cases);
  if (files.length === 0 || files.length > MAX_RETRIED_FILES) return { cases, recovered: false };
  printLine(`\n== ${step.name}, again: ${files.join(", ")}`);
  const report = join(scratch, `${step.name}-again.xml`);
  await runTests({ ...step, tests: files }, report, 1);
  const verdict = judgeRetries(cases, readCases(report));
  unsteady.push(...verdict.unsteady);
  return { cases: verdict.cases, recovered: listFailedFiles(verdict.cases).length === 0 };
}

/** Lists flaky files at the end, where they are noticed. A few do not block a release, but each is a defect of the test or the product. */
function reportFlaky(): void {
  summary.push(...unsteady.flatMap((file) => formatUnsteady(file, SEED)));
  if (unsteady.length <= MAX_UNSTEADY) return;
  total.failed += 1;
  summary.push(`FAILED  ${unsteady.length} unsteady files: more than ${MAX_UNSTEADY} are not a coincidence`);
}

/** Counts the tests of a step. A run that failed without a failed test, such as a crash of the runner itself, counts as one failure. */
function countTests({ cases, recovered }: { cases: readonly TestCase[]; recovered: boolean }, code: number): Tally {
  const count = (outcome: TestCase["outcome"]): number =>
    cases.filter((testCase) => testCase.outcome === outcome).length;
  for (const testCase of cases) {
    if (testCase.outcome === "failed")
      summary.push(`        failed: ${testCase.file}: ${testCase.title}`, ...formatReason(testCase));
    if (testCase.outcome === "skipped")
      summary.push(`        skipped: ${testCase.file}: ${testCase.title} [${findSkipReason(testCase)}]`);
  }
  const failed = count("failed");
  return {
    passed: count("passed"),
    failed: failed === 0 && code !== 0 && !recovered ? 1 : failed,
    skipped: count("skipped"),
  };
}

/** Fails the run for processes that have outlived their tests, and kills them. Daemons whose folder is deleted get time to notice that. */
async function checkLeftovers(): Promise<void> {
  const deadline = performance.now() + SHUTDOWN_GRACE_MS;
  let leftovers = listLeftovers();
  while (leftovers.length > 0 && performance.now() < deadline) {
    await Bun.sleep(200);
    leftovers = listLeftovers();
  }
  endLeftovers(leftovers);
  if (leftovers.length === 0) return;
  total.failed += 1;
  const lines = leftovers.map(
    ({ pid, command, location }) =>
      `        ${pid} ${command}${location ? `\n          of ${describeLocation(location)}` : ""}`,
  );
  summary.push("FAILED  processes left behind:", ...lines);
}

function listLeftovers(): Leftover[] {
  return findLeftovers(runMark, readNotedFolders(ledger));
}

function interrupt(): void {
  for (const child of running) child.kill("SIGTERM");
  endLeftovers(listLeftovers());
  rmSync(scratch, { recursive: true, force: true });
  process.exit(130);
}

function formatTally({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

function printLine(text: string): void {
  process.stdout.write(`${text}\n`);
}
