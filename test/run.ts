// Runs `npm test`: builds the binary; then every test, in parallel with lint, types and unused code, and, one file at a time, what is
// repeated on PostgreSQL and against the binary. The last line is `N passed, N failed` (`, N skipped` if any), summed from the test reports
// plus one for each step that is not a test. Options:
// - --only lint,unit: these steps
// - --changed: only tests that this branch's changes can affect, no binary
// - --slowest N: number of slow files listed
// - --since REVISION: what --changed compares with; main by default
// - --all-binary: all API tests that can run against the binary, as before a release
// - --record: records how long each file took (test/support/run/timings.json), so that the longest start first
// Leaves no process behind, and fails and names the test if one did. Files with a few failed tests run again alone: tests that then pass
// are listed as flaky at the end, and more than five such files fail the run.
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
/** More broken files than this have a common cause and are not retried. */
const SECOND_TRIES = 16;
/** Processes that share the files of a step: most tests wait for a server, a daemon or a disk more than half of the time. */
const WORKERS = Math.min(4, availableParallelism() + 1);
/** Processes for the steps next to the large one: with one process, they take equally long. */
const OTHER_STEPS_WORKERS = 1;
const TEMP = chooseTempFolder();
/** One seed for all random tests, in both runs. */
const SEED = Number(process.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

interface Step {
  name: string;
  command: string[];
  env?: Readonly<Record<string, string>>;
  /** Arguments of `bun test`; the step then counts its tests instead of itself. */
  tests?: string[];
  /** Test files that another step runs. */
  ignored?: readonly string[];
  /** A step that this one depends on: an older binary must not replace one that failed to build. */
  needs?: string;
}

interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

/**
 * Tests that also run on PostgreSQL: the ones that depend most on a database's dialect and on concurrency (lists, searches, reports, guards
 * on other rows, timers, queues), and servers that are killed. `bun run test:postgres` runs all API tests.
 */
const ON_POSTGRES = [
  ...["organizations", "template-versions", "insights/reports.test.ts"],
  ...["audit/trail.test.ts", "connections/reported.test.ts", "notifications/inbox.test.ts", "users/users.test.ts"],
  ...["groups/quota.test.ts", "workspaces/list.test.ts", "workspaces/dormancy.test.ts", "templates/story.test.ts"],
  ...["chats/list.test.ts", "chats/costs.test.ts", "chats/races.test.ts", "chats/random"],
]
  .map((path) => `test/api/${path}`)
  .concat("test/crash/server-kills.test.ts", "test/crash/chats/server-chats.test.ts");

/** Tests that also run on three active nodes behind a round-robin proxy: any node finds the owner of a shard. */
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
// Tests that access the server's internals have already run in-process.
const OUTSIDE = await listOutsideFiles(ROOT, "test/api");
/** Every test file; the folder is that of bunfig.toml. */
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
    needs: "build",
  },
];

/** Generates the types that checks and tests read, which are not committed. */
const ROUTES: Step = { name: "routes", command: ["test/api/routes-table.ts"] };

/** The steps of `--changed`, unless others are named. */
const QUICK = ["lint", "types", "unused", "unit"];

const scratch = mkdtempSync(join(tmpdir(), "slipway-tests-"));
const mark = `${process.pid}-${crypto.randomUUID()}`;
const ledger = join(scratch, "folders");
const unsteady: UnsteadyFile[] = [];
const total: Tally = { passed: 0, failed: 0, skipped: 0 };
const summary: string[] = [];
const broken = new Set<string>();
const running = new Set<Bun.Subprocess>();

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupt());

const processors = cpus();
/** The least that CI multiplies timeouts by: the machine is measured while nothing else runs, and then several tests share its cores. */
const MIN_CI_PACE = 3;
/** How many times longer than on the reference machine timeouts are here. */
const pace = Math.max(await measurePace(), process.env.CI ? MIN_CI_PACE : 1);

try {
  const chosen = selectSteps();
  if (pace > 1) printLine(`Limits of time are ${pace.toFixed(1)} times as long on this machine.`);
  if (chosen.some(({ tests }) => tests)) for (const text of listMissingNeeds()) printLine(text);
  // Tests start when there is a binary for them. Checks of the source tree use the remaining time, also next to the build.
  const checks = chosen.filter((step) => !step.tests && !isBuild(step));
  const printing = runCheck(ROUTES);
  const checking = printing.then(() => Promise.all(checks.map(runCheck)));
  await Promise.all([printing, ...chosen.filter(isBuild).map(runCheck)]);
  // The registry may take its time, so it is not asked when everything else has ended.
  const advisories = process.env.CI ? readAdvisories() : [];
  const isBuilt = chosen.some(({ name }) => name === "build") && !broken.has("build");
  const isTriedBuilt = isBuilt && chosen.some(({ name }) => name === "binary");
  const trials = chosen.filter(({ tests }) => tests);
  for (const step of trials) {
    // Servers and daemons as separate processes start with a third of the CPU time if they are compiled.
    if (isBuilt) step.env = { SLIPWAY_TEST_PROGRAM: BINARY, ...step.env };
    if (isTriedBuilt && step.name === "unit") step.ignored = BINARY_ONLY;
  }
  const [unit, others] = [trials.filter(isUnit), trials.filter((step) => !isUnit(step))];
  await Promise.all([
    checking,
    runSequentially(unit, WORKERS),
    runSequentially(others, unit.length > 0 ? OTHER_STEPS_WORKERS : WORKERS),
  ]);
  await sweep();
  reportFlaky();
  summary.push(...(await advisories), formatBusyShare(processors, cpus()));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
printLine(["", ...summary, "", line(total)].join("\n"));
process.exit(total.failed === 0 ? 0 : 1);

function selectSteps(): Step[] {
  const names = options.only?.split(",") ?? (options.changed ? QUICK : undefined);
  const unknown = names?.filter((name) => !STEPS.some((step) => step.name === name)) ?? [];
  if (unknown.length > 0) {
    printLine(`--only takes ${STEPS.map((step) => step.name).join(", ")}; got ${unknown.join(", ")}`);
    process.exit(2);
  }
  const chosen = STEPS.filter((step) => names?.includes(step.name) ?? true);
  return options.changed ? chosen.map(limitToReached) : chosen;
}

/** Restricts the step to tests that this branch's changes can affect. */
function limitToReached(step: Step): Step {
  if (!step.tests) return step;
  const sources = [...new Bun.Glob("{src,actors,db,test}/**/*.{ts,tsx}").scanSync({ cwd: ROOT })];
  const changed = listChangedFiles(ROOT, options.since);
  const reached = findAffectedTests(ROOT, sources, changed);
  const within =
    step.tests.length === 0 ? reached : reached.filter((file) => step.tests?.some((of) => file.startsWith(of)));
  printLine(`${changed.length} files have changed since ${options.since}: ${within.length} test files can tell`);
  return { ...step, tests: within.map((file) => `./${file}`) };
}

/** Runs a step that is not a test, next to others: its output is shown when it has ended. */
async function runCheck(step: Step): Promise<void> {
  const started = performance.now();
  const child = start(step.command, step.env, "pipe");
  if (!isBuild(step)) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout as ReadableStream).text(),
    new Response(child.stderr as ReadableStream).text(),
    awaitExit(child),
  ]);
  printLine(`\n== ${step.name}\n${output}${errors}`.trimEnd());
  settle(step, { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: 0 }, measureCost(child, started));
}

function isBuild({ name }: Step): boolean {
  return name === "build";
}

function isUnit({ name }: Step): boolean {
  return name === "unit";
}

async function runSequentially(steps: readonly Step[], workers: number): Promise<void> {
  for (const step of steps) {
    if (step.needs && broken.has(step.needs)) skipStep(step, step.needs);
    else await runStep(step, workers);
  }
}

async function runStep(step: Step, workers: number): Promise<void> {
  printLine(`\n== ${step.name}`);
  const report = join(scratch, `${step.name}.xml`);
  const [code, cost] = await runTests(step, report, workers);
  const expected = listExpectedFiles(TEST_FILES, { paths: step.tests ?? [], ignored: step.ignored ?? [] });
  const cases = withUnreported(casesIn(report), expected);
  settle(step, countTests(await retryFailed(step, cases), code), cost);
  summary.push(...formatSlowest(cases, Number(options.slowest)));
}

/** Counts the step and writes its summary line. */
function settle(step: Step, tally: Tally, cost: Cost): void {
  if (tally.failed > 0) broken.add(step.name);
  total.passed += tally.passed;
  total.failed += tally.failed;
  total.skipped += tally.skipped;
  summary.push(
    `${tally.failed === 0 ? "ok    " : "FAILED"}  ${step.name.padEnd(8)} ${line(tally)}  ${formatCost(cost)}`,
  );
}

/** Returns the registry's advisories about used packages, as a warning: they must not fail a run without any change. */
async function readAdvisories(): Promise<string[]> {
  const child = Bun.spawn([process.execPath, "audit"], { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
  const limit = setTimeout(() => child.kill(), ADVISORIES_MS);
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  clearTimeout(limit);
  const lines = `${output}${errors}`.trim().split("\n").slice(-ADVISORY_LINES);
  if (code === 0) return ["        advisories: none"];
  return ["        advisories (a warning):", ...lines.map((text) => `          ${text}`)];
}

function skipStep(step: Step, needed: string): void {
  total.failed += 1;
  summary.push(`FAILED  ${step.name.padEnd(8)} not run, because ${needed} failed`);
}

async function runTests(step: Step, report: string, workers: number): Promise<[code: number, cost: Cost]> {
  const started = performance.now();
  const flags = [
    "--only-failures",
    `--timeout=${Math.ceil(TEST_TIMEOUT_MS * pace)}`,
    "--reporter=junit",
    `--reporter-outfile=${report}`,
  ];
  const without = step.ignored ? [`--path-ignore-patterns={${step.ignored.join(",")}}`] : [];
  const order = [`--timings=${TIMINGS}`, ...(options.record && step.name === "unit" ? ["--update-timings"] : [])];
  const together = workers > 1 ? [`--parallel=${workers}`, "--no-isolate", ...order] : [];
  const child = start([...step.command, ...together, ...without, ...flags, ...(step.tests ?? [])], step.env, "inherit");
  return [await awaitExit(child), measureCost(child, started)];
}

async function awaitExit(child: Bun.Subprocess): Promise<number> {
  await child.exited;
  running.delete(child);
  return child.exitCode ?? 1;
}

function start(
  words: string[],
  env: Readonly<Record<string, string>> = {},
  output: "inherit" | "pipe",
): Bun.Subprocess {
  const child = Bun.spawn([process.execPath, "--no-env-file", ...words], {
    cwd: ROOT,
    stdio: ["ignore", output, output],
    // Tools that look for `bun` find this one.
    env: {
      ...process.env,
      PATH: dirname(process.execPath) + delimiter + process.env.PATH,
      SLIPWAY_TEST_SEED: String(SEED),
      [PACE_VARIABLE]: String(pace),
      TMPDIR: TEMP,
      [RUN_MARK]: mark,
      [RUN_LEDGER]: ledger,
      ...env,
    },
  });
  running.add(child);
  return child;
}

/** Returns the tests of a report; none without a report. */
function casesIn(report: string): TestCase[] {
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
  if (files.length === 0 || files.length > SECOND_TRIES) return { cases, recovered: false };
  printLine(`\n== ${step.name}, once more: ${files.join(", ")}`);
  const report = join(scratch, `${step.name}-again.xml`);
  await runTests({ ...step, tests: files }, report, 1);
  const judged = judgeRetries(cases, casesIn(report));
  unsteady.push(...judged.unsteady);
  return { cases: judged.cases, recovered: listFailedFiles(judged.cases).length === 0 };
}

/** Lists flaky files at the end, where they are seen. A few do not block a release; each is a defect of the test or product to fix. */
function reportFlaky(): void {
  summary.push(...unsteady.flatMap((file) => formatUnsteady(file, SEED)));
  if (unsteady.length <= MAX_UNSTEADY) return;
  total.failed += 1;
  summary.push(`FAILED  ${unsteady.length} unsteady files: more than ${MAX_UNSTEADY} are not a coincidence`);
}

/** A run that failed without a failed test (a crash of the runner itself) counts as one failure. */
function countTests({ cases, recovered }: { cases: readonly TestCase[]; recovered: boolean }, code: number): Tally {
  const count = (outcome: TestCase["outcome"]): number => cases.filter((one) => one.outcome === outcome).length;
  for (const one of cases) {
    if (one.outcome === "failed") summary.push(`        failed: ${one.file}: ${one.title}`, ...formatReason(one));
    if (one.outcome === "skipped") summary.push(`        skipped: ${one.file}: ${one.title} [${findSkipReason(one)}]`);
  }
  const failed = count("failed");
  return {
    passed: count("passed"),
    failed: failed === 0 && code !== 0 && !recovered ? 1 : failed,
    skipped: count("skipped"),
  };
}

/** Fails the run for processes that have outlived their tests, and kills them. Daemons whose folder no longer exists get time to notice. */
async function sweep(): Promise<void> {
  const until = performance.now() + SHUTDOWN_GRACE_MS;
  let found = listLeftovers();
  while (found.length > 0 && performance.now() < until) {
    await Bun.sleep(200);
    found = listLeftovers();
  }
  endLeftovers(found);
  if (found.length === 0) return;
  total.failed += 1;
  const lines = found.map(
    ({ pid, command, place }) => `        ${pid} ${command}${place ? `\n          of ${describeLocation(place)}` : ""}`,
  );
  summary.push("FAILED  processes left behind:", ...lines);
}

function listLeftovers(): Leftover[] {
  return findLeftovers(mark, readNotedFolders(ledger));
}

function interrupt(): void {
  for (const child of running) child.kill("SIGTERM");
  endLeftovers(listLeftovers());
  rmSync(scratch, { recursive: true, force: true });
  process.exit(130);
}

function line({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

function printLine(text: string): void {
  process.stdout.write(`${text}\n`);
}
