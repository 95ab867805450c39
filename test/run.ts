// What `npm test` runs: lint, types, unused code, every test, the binary, and the API tests again against it. The last line is
// `N passed, N failed` (`, N skipped` if any), summed from the test reports plus one for each step that is no test. Parts of it:
// `npm test -- --only lint,unit`. Leaves no process behind, and fails when a test did, which it names. Files in which a few tests failed are run
// once more by themselves: what passes then is named as unsteady in the summary, a defect of the test or of the product to mend.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { readJunit, skipReason, type TestCase } from "./support/junit.ts";
import { notedFolders, RUN_LEDGER, testAt } from "./support/ledger.ts";
import { endLeftovers, type Leftover, leftovers, RUN_MARK } from "./support/leftovers.ts";
import { outsideFiles } from "./support/outside.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BINARY = join(ROOT, "dist", "slipway");
const TEST_TIMEOUT_MS = 30_000;
/** A daemon looks for its folder each 2 s, and then ends in order. */
const NOTICE_MS = 15_000;
const ADVISORIES_MS = 30_000;
const ADVISORY_LINES = 20;
/** More broken files than this are no accident. */
const SECOND_TRIES = 5;
/** Processes that share the files: most tests wait for a server, a daemon or a disk half of their time. */
const WORKERS = Math.min(4, availableParallelism());

interface Step {
  name: string;
  command: string[];
  env?: Record<string, string>;
  /** Arguments of `bun test`; the step then counts its tests instead of itself. */
  tests?: string[];
  /** A step without which this one says nothing: an older binary must not stand in for the one that failed to build. */
  needs?: string;
}

interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

const STEPS: Step[] = [
  { name: "lint", command: ["node_modules/@biomejs/biome/bin/biome", "check", "."] },
  { name: "types", command: ["node_modules/typescript/bin/tsc", "--noEmit"] },
  { name: "unused", command: ["node_modules/knip/bin/knip-bun.js"] },
  { name: "unit", command: ["test"], tests: [] },
  { name: "build", command: ["src/build.ts"] },
  {
    name: "binary",
    command: ["test"],
    // What reaches into the server has been run beside it already.
    tests: [...(await outsideFiles(ROOT, "test/api")), "test/binary"],
    env: { SLIPWAY_TEST_BINARY: BINARY },
    needs: "build",
  },
];

const scratch = mkdtempSync(join(tmpdir(), "slipway-tests-"));
const mark = `${process.pid}-${crypto.randomUUID()}`;
const ledger = join(scratch, "folders");
const total: Tally = { passed: 0, failed: 0, skipped: 0 };
const summary: string[] = [];
const broken = new Set<string>();
let running: Bun.Subprocess | undefined;

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupt());

try {
  for (const step of chosenSteps()) {
    if (step.needs && broken.has(step.needs)) skipStep(step, step.needs);
    else await runStep(step);
  }
  await sweep();
  if (process.env.CI) await askAdvisories();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
say(["", ...summary, "", line(total)].join("\n"));
process.exit(total.failed === 0 ? 0 : 1);

function chosenSteps(): Step[] {
  const { values } = parseArgs({ options: { only: { type: "string" } } });
  const names = values.only?.split(",");
  const unknown = names?.filter((name) => !STEPS.some((step) => step.name === name)) ?? [];
  if (unknown.length > 0) {
    say(`--only takes ${STEPS.map((step) => step.name).join(", ")}; got ${unknown.join(", ")}`);
    process.exit(2);
  }
  return STEPS.filter((step) => names?.includes(step.name) ?? true);
}

async function runStep(step: Step): Promise<void> {
  say(`\n== ${step.name}`);
  const begun = performance.now();
  const report = join(scratch, `${step.name}.xml`);
  const code = await spawned(step, report);
  const tally = step.tests
    ? countTests(await steady(step, casesIn(report)), code)
    : { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: 0 };
  if (tally.failed > 0) broken.add(step.name);
  total.passed += tally.passed;
  total.failed += tally.failed;
  total.skipped += tally.skipped;
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  summary.push(`${tally.failed === 0 ? "ok    " : "FAILED"}  ${step.name.padEnd(7)} ${line(tally)}  (${seconds} s)`);
}

/** What the registry knows against packages in use, as a warning: news of others must not turn a tree red that nobody has touched. */
async function askAdvisories(): Promise<void> {
  const child = Bun.spawn([process.execPath, "audit"], { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
  const limit = setTimeout(() => child.kill(), ADVISORIES_MS);
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  clearTimeout(limit);
  const said = `${output}${errors}`.trim().split("\n").slice(-ADVISORY_LINES);
  if (code === 0) summary.push("        advisories: none");
  else summary.push("        advisories (a warning):", ...said.map((text) => `          ${text}`));
}

function skipStep(step: Step, needed: string): void {
  total.failed += 1;
  summary.push(`FAILED  ${step.name.padEnd(7)} not run, because ${needed} failed`);
}

async function spawned(step: Step, report: string, workers = WORKERS): Promise<number> {
  const flags = ["--only-failures", `--timeout=${TEST_TIMEOUT_MS}`, "--reporter=junit", `--reporter-outfile=${report}`];
  const together = workers > 1 ? [`--parallel=${workers}`, "--no-isolate"] : [];
  const arguments_ = step.tests ? [...step.command, ...together, ...flags, ...step.tests] : step.command;
  running = Bun.spawn([process.execPath, "--no-env-file", ...arguments_], {
    cwd: ROOT,
    stdio: ["ignore", "inherit", "inherit"],
    // Tools that look for `bun` find this one.
    env: {
      ...process.env,
      PATH: dirname(process.execPath) + delimiter + process.env.PATH,
      [RUN_MARK]: mark,
      [RUN_LEDGER]: ledger,
      ...step.env,
    },
  });
  return await running.exited;
}

/** The tests of a report, none when there is no report. */
function casesIn(report: string): TestCase[] {
  try {
    return readJunit(readFileSync(report, "utf8"));
  } catch {
    summary.push("        no test report was written");
    return [];
  }
}

/** The same tests, with the outcome of a second try where a few failed. */
async function steady(step: Step, cases: TestCase[]): Promise<{ cases: TestCase[]; mended: boolean }> {
  const files = new Set(cases.filter(({ outcome }) => outcome === "failed").map(({ file }) => file));
  if (files.size === 0 || files.size > SECOND_TRIES) return { cases, mended: false };
  say(`\n== ${step.name}, once more: ${[...files].join(", ")}`);
  const report = join(scratch, `${step.name}-again.xml`);
  await spawned({ ...step, tests: [...files] }, report, 1);
  const second = casesIn(report);
  // Each run draws seeds of its own, and some titles name them.
  const named = ({ file, title }: TestCase): string => `${file} ${title.replaceAll(/seed \d+/g, "seed")}`;
  const passed = (one: TestCase): boolean => {
    const tries = second.filter((again) => named(again) === named(one));
    return one.outcome === "failed" && tries.length > 0 && tries.every(({ outcome }) => outcome === "passed");
  };
  for (const one of cases.filter(passed)) summary.push(`        unsteady: ${one.file}: ${one.title}`);
  const now = cases.map((one): TestCase => (passed(one) ? { ...one, outcome: "passed" } : one));
  return { cases: now, mended: now.every(({ outcome }) => outcome !== "failed") };
}

/** A run that ended badly without a failed test (a file that does not load, a crash) is one failure by itself. */
function countTests({ cases, mended }: { cases: TestCase[]; mended: boolean }, code: number): Tally {
  const count = (outcome: TestCase["outcome"]): number => cases.filter((one) => one.outcome === outcome).length;
  for (const one of cases) {
    if (one.outcome === "failed") summary.push(`        failed: ${one.file}: ${one.title}`);
    if (one.outcome === "skipped") summary.push(`        skipped: ${one.file}: ${one.title} [${skipReason(one)}]`);
  }
  const failed = count("failed");
  return {
    passed: count("passed"),
    failed: failed === 0 && code !== 0 && !mended ? 1 : failed,
    skipped: count("skipped"),
  };
}

/** Fails the run for processes that have outlived their tests, and ends them. Daemons whose folder is gone get the time to notice. */
async function sweep(): Promise<void> {
  const until = performance.now() + NOTICE_MS;
  let found = left();
  while (found.length > 0 && performance.now() < until) {
    await Bun.sleep(200);
    found = left();
  }
  endLeftovers(found);
  if (found.length === 0) return;
  total.failed += 1;
  const lines = found.map(
    ({ pid, command, place }) => `        ${pid} ${command}${place ? `\n          of ${testAt(place)}` : ""}`,
  );
  summary.push("FAILED  processes left behind:", ...lines);
}

function left(): Leftover[] {
  return leftovers(mark, notedFolders(ledger));
}

function interrupt(): void {
  running?.kill("SIGTERM");
  endLeftovers(left());
  rmSync(scratch, { recursive: true, force: true });
  process.exit(130);
}

function line({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
