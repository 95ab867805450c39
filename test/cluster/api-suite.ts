// `bun run test:postgres [PATH...]`: the API tests on the PostgreSQL of SLIPWAY_TEST_POSTGRES, a few files at a time; records each file's
// result in test/results/api-on-postgres.md. With SLIPWAY_TEST_NODES=active, each server is three active nodes, and the results have their
// own table.
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { needs } from "../support/needs.ts";
import { scaleTimeout, TEST_TIMEOUT_MS } from "../support/pace.ts";
import { findSkipReason, NO_REASON, readJunit, type TestCase } from "../support/run/junit.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const RESULTS = fileURLToPath(new URL("../results/api-on-postgres.md", import.meta.url));
/** Files per process, which share a template database. */
const FILES_PER_PROCESS = 6;
const TIMEOUT_MS = 10 * 60_000;
/** The text before and after the table. */
const TABLE_MARKERS =
  process.env.SLIPWAY_TEST_NODES === "active"
    ? { start: "<!-- result on active nodes: ", end: "<!-- end of result on active nodes -->" }
    : { start: "<!-- result: ", end: "<!-- end of result -->" };
/** Maximum number of failures listed per file; the rest are counted. */
const MAX_LISTED = 5;
const ROW = /^\| `([\w/.-]+)` \|/;

if (!needs.postgres.found) {
  process.stderr.write(`${needs.postgres.reason}\n`);
  process.exit(2);
}

const requestedPaths = process.argv.length > 2 ? process.argv.slice(2) : ["test/api"];
const files = requestedPaths.flatMap(listTestFiles).sort();
const scratch = mkdtempSync(join(tmpdir(), "slipway-suite-"));
for (let index = 0; index < files.length; index += FILES_PER_PROCESS)
  await recordResults(await runFiles(files.slice(index, index + FILES_PER_PROCESS)));
rmSync(scratch, { recursive: true, force: true });

type Result = { readonly file: string; readonly cases: readonly TestCase[] };

function listTestFiles(path: string): string[] {
  if (!statSync(join(ROOT, path)).isDirectory()) return [path];
  return globSync("**/*.test.ts", { cwd: join(ROOT, path) }).map((file) => join(path, file));
}

async function runFiles(batch: readonly string[]): Promise<Result[]> {
  const report = join(scratch, "report.xml");
  rmSync(report, { force: true });
  const flags = [
    `--timeout=${scaleTimeout(TEST_TIMEOUT_MS)}`,
    "--only-failures",
    "--reporter=junit",
    `--reporter-outfile=${report}`,
  ];
  const paths = batch.map((file) => `./${file}`);
  const child = Bun.spawn([process.execPath, "--no-env-file", "test", ...flags, ...paths], {
    cwd: ROOT,
    env: { ...process.env, SLIPWAY_TEST_DATABASE: "postgres" },
    stdio: ["ignore", "inherit", "inherit"],
    timeout: TIMEOUT_MS,
  });
  await child.exited;
  const cases = (() => {
    try {
      return readJunit(readFileSync(report, "utf8"));
    } catch {
      return [];
    }
  })();
  return batch.map((file) => ({ file, cases: cases.filter((testCase) => testCase.file === file) }));
}

/** Drops rows of files that no longer exist. */
async function recordResults(results: readonly Result[]): Promise<void> {
  const text = readFileSync(RESULTS, "utf8");
  const tableStart = text.indexOf("\n", text.indexOf(TABLE_MARKERS.start)) + 1;
  const tableEnd = text.indexOf(TABLE_MARKERS.end);
  const tableText = text.slice(tableStart, tableEnd);
  const rows = new Map(
    tableText.split("\n").flatMap((row) => (ROW.test(row) ? [[ROW.exec(row)?.[1] ?? "", row] as const] : [])),
  );
  for (const { file, cases } of results) rows.set(file.replace(/^test\/api\//, ""), formatRow(file, cases));
  const known = new Set(listTestFiles("test/api").map((file) => file.replace(/^test\/api\//, "")));
  const table = [...rows].filter(([file]) => known.has(file)).sort(([a], [b]) => (a < b ? -1 : 1));
  const head = ["| file | last run | passed | skipped | failed |", "|---|---|---|---|---|"];
  const lines = [...head, ...table.map(([, row]) => row)];
  await Bun.write(RESULTS, `${text.slice(0, tableStart)}${lines.join("\n")}\n${text.slice(tableEnd)}`);
}

function formatRow(file: string, cases: readonly TestCase[]): string {
  const casesWith = (outcome: TestCase["outcome"]) => cases.filter((testCase) => testCase.outcome === outcome);
  const failed = casesWith("failed").map(({ title }) => title.replaceAll("|", "/").slice(0, 110));
  const more = failed.length > MAX_LISTED ? [`and ${failed.length - MAX_LISTED} more`] : [];
  const listedFailures = [...failed.slice(0, MAX_LISTED), ...more].join("; ");
  const passed = casesWith("passed").length;
  const day = new Date().toISOString().slice(0, 10);
  const counts = cases.length > 0 ? `${passed} of ${passed + failed.length}` : "did not end";
  process.stdout.write(`${file}: ${counts}\n`);
  return `| \`${file.replace(/^test\/api\//, "")}\` | ${day} | ${counts} | ${formatSkipped(casesWith("skipped"))} | ${listedFailures} |`;
}

/** Returns the number of skipped cases, and each reason. */
function formatSkipped(cases: readonly TestCase[]): string {
  const reasons = new Set(cases.map(findSkipReason).filter((reason) => reason !== NO_REASON));
  return [cases.length, ...reasons].join("; ");
}
