// `bun run bench`: measures the product and the baseline in turn, and prints each row as soon as it is measured, with ratios and targets.
// It is not part of the tests, and a missed target is only a line in the table. Exits with 1 if a row could not be measured, and with
// --check also if a ratio is worse than in earlier runs.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Driver } from "./driver.ts";
import { describeMachine, findFileSystem, pickCores, processorTicks } from "./machine.ts";
import { productCommand } from "./product.ts";
import { formatFigureTables, formatVerdictTable, type Measurements, type RowResult, replaceResults } from "./report.ts";
import { findNewest, findRegressions, readRuns, type StoredRun, writeRun } from "./results.ts";
import type { Bench, Row } from "./row.ts";
import { agents } from "./rows/rows-agents.ts";
import { audit, auditCost } from "./rows/rows-audit.ts";
import { backup } from "./rows/rows-backup.ts";
import { latency, send, tokens } from "./rows/rows-chats.ts";
import { chatsAtScale } from "./rows/rows-chats-at-scale.ts";
import { cluster } from "./rows/rows-cluster.ts";
import { curves } from "./rows/rows-curves.ts";
import { gateway } from "./rows/rows-gateway.ts";
import { insights } from "./rows/rows-insights.ts";
import { fanout, idle, ingest, measureIngest, stalled, steady } from "./rows/rows-logs.ts";
import { network } from "./rows/rows-network.ts";
import { networkCrowd } from "./rows/rows-network-crowd.ts";
import { networkSsh } from "./rows/rows-network-ssh.ts";
import { threeNodes } from "./rows/rows-nodes.ts";
import { opencodeRow } from "./rows/rows-opencode.ts";
import { proxy } from "./rows/rows-proxy.ts";
import { get, known, start } from "./rows/rows-server.ts";
import { terraform } from "./rows/rows-terraform.ts";
import { tools } from "./rows/rows-tools.ts";
import { terminal, tunnel } from "./rows/rows-tunnel.ts";
import { undo } from "./rows/rows-undo.ts";
import { web } from "./rows/rows-web.ts";
import { builds, list, watchers } from "./rows/rows-workspaces.ts";
import { type BenchSetup, startSide, writeSample } from "./sides.ts";

/** Interrupts count as other programs, too, so the figure is never quite 0. */
const OTHER_PROGRAMS = "cores used by other programs";

const rows: Row[] = [
  ingest,
  steady,
  get,
  fanout,
  stalled,
  idle,
  start,
  known,
  agents,
  tunnel,
  terminal,
  proxy,
  network,
  networkCrowd,
  networkSsh,
  tokens,
  latency,
  send,
  gateway,
  opencodeRow,
  tools,
  list,
  builds,
  watchers,
  chatsAtScale,
  curves,
  insights,
  audit,
  auditCost,
  backup,
  undo,
  ...terraform,
  cluster,
  threeNodes,
  ...web,
];

/** Returns true if the row has this name, or if the name is its prefix: `web` selects all rows of pages. */
const matchesName = (name: string, prefix: string): boolean => name === prefix || name.startsWith(`${prefix}-`);

const help = `bun run bench [options]
  --rounds N     rounds of each row, floor and product in turn (default 5; long rows run fewer)
  --only ROW     only this row, or all with this prefix (web); may be repeated: ${rows.map((row) => row.name).join(", ")}
  --seconds N    length of a measured window (default 3)
  --stall N      seconds for which the stalled followers do not read (default 60)
  --floor        measures only the floor, without the product
  --product FILE the binary to measure (default dist/slipway, else the source)
  --dir DIR      where databases are written (default the system's temporary folder)
  --quick        only the most important rows, one round of one second each: about three minutes, for --check
  --check        compares the ratios with the last five runs of each row; exits with 1 if one is worse by more than its noise
  --no-write     does not store results`;

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string" },
    only: { type: "string", multiple: true },
    seconds: { type: "string" },
    stall: { type: "string", default: "60" },
    floor: { type: "boolean", default: false },
    product: { type: "string" },
    dir: { type: "string", default: tmpdir() },
    quick: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    "no-write": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

const QUICK_ROWS = ["ingest", "steady", "get", "fanout", "start", "tunnel", "proxy", "tokens", "latency", "send"];
/** These defaults depend on --quick. */
const rounds = Number(options.rounds ?? (options.quick ? 1 : 5));
const seconds = Number(options.seconds ?? (options.quick ? 1 : 3));
const RESULTS = join(import.meta.dir, "../results/bench");
const README = join(import.meta.dir, "README.md");

const printLine = (text: string): void => void process.stdout.write(`${text}\n`);
const printProgress = (text: string): void => void process.stderr.write(`${text}\n`);

async function main(): Promise<void> {
  if (options.help) return printLine(help);
  const unknown = options.only?.find((name) => !rows.some((row) => matchesName(row.name, name)));
  if (unknown) throw new Error(`There is no row "${unknown}".\n${help}`);
  const only = options.only ?? (options.quick ? QUICK_ROWS : undefined);
  const chosen = rows.filter((row) => !only || only.some((name) => matchesName(row.name, name)));
  const cores = pickCores();
  if (!cores)
    printProgress("There is no second core or no taskset: server and driver share cores, so ratios are rough.");
  const dir = mkdtempSync(join(options.dir, "slipway-bench-"));
  try {
    if (["tmpfs", "ramfs"].includes(findFileSystem(dir)))
      printProgress(`${dir} is in memory: commits cost nothing there. Use --dir.`);
    const command = options.floor ? undefined : productCommand(options.product);
    if (!command) printProgress("There is no product: only the floor is measured.");
    const sides: BenchSetup = { dir, core: cores?.server, productCommand: command };
    let sample: Promise<string> | undefined;
    let floorLimit: Promise<number> | undefined;
    const bench: Bench = {
      driver: await Driver.compile(dir, cores?.driver),
      setup: sides,
      seconds,
      stallSeconds: Number(options.stall),
      start: (side, needs) => startSide(sides, side, needs),
      sample: () => (sample ??= writeSample(sides)),
      floorLimit: () => (floorLimit ??= measureIngest(bench, "floor").then(({ lines_per_s }) => lines_per_s as number)),
    };
    const product = command === undefined ? "floor only" : command.length > 1 ? "from source" : "compiled binary";
    const machine = `${describeMachine()}, ${findFileSystem(dir)}`;
    const run: StoredRun = { date: new Date().toISOString(), commit: readRevision(), machine, product, rows: [] };
    const earlierRuns = readRuns(RESULTS);
    printLine(`${run.date.slice(0, 10)}, ${run.commit}: ${machine}. Product: ${product}.\n`);
    for (const row of chosen) {
      const { rounds, error } = await measureRow(bench, row);
      run.rows.push({ name: row.name, rounds, ...(error === undefined ? {} : { error }) });
      const result = { row: { ...row, figures: { ...row.figures, others: OTHER_PROGRAMS } }, rounds };
      printLine(
        error === undefined
          ? `${formatFigureTables([result])}\n\n${formatVerdictTable([result])}\n`
          : `**${row.name}** failed: ${error}\n`,
      );
      if (!options["no-write"]) writeRun(RESULTS, run);
    }
    if (!options["no-write"])
      await Bun.write(README, replaceResults(readFileSync(README, "utf8"), formatNewestTable()));
    const failed = run.rows.filter(({ error }) => error !== undefined);
    if (failed.length > 0) {
      printProgress(`Could not measure: ${failed.map(({ name }) => name).join(", ")}.`);
      process.exitCode = 1;
    }
    if (options.check) reportRegressions(run, earlierRuns);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Returns the README's table: the newest run of each row. */
function formatNewestTable(): string {
  const runs = readRuns(RESULTS);
  const newest = rows.flatMap((row): RowResult[] => {
    const found = findNewest(runs, row.name);
    return found ? [{ row, ...found }] : [];
  });
  const last = runs.at(-1);
  return `Last run: ${last?.machine}. Product: ${last?.product}.\n\n${formatVerdictTable(newest)}`;
}

/** Returns the measured commit, with `+` if files differ from it. */
function readRevision(): string {
  const git = (...args: string[]) =>
    Bun.spawnSync(["git", "-C", import.meta.dir, ...args], { stderr: "ignore" })
      .stdout.toString()
      .trim();
  const isChanged = git("status", "--porcelain", "--untracked-files=no", "--", ":/src", ":/actors", ":/db") !== "";
  return `${git("rev-parse", "--short", "HEAD") || "unknown"}${isChanged ? "+" : ""}`;
}

/** Reports ratios that are worse than in earlier runs by more than their noise. The exit code is then 1. */
function reportRegressions(run: StoredRun, earlierRuns: readonly StoredRun[]): void {
  const regressions = findRegressions(rows, run, earlierRuns);
  for (const { row, what: figure, now, before, limit } of regressions) {
    printProgress(
      `${row}: ${figure} is ${now.toPrecision(3)}, was ${before.toPrecision(3)} (noise up to ${limit.toPrecision(3)}).`,
    );
  }
  if (regressions.length > 0) process.exitCode = 1;
  else printProgress("No ratio is worse than before by more than its noise.");
}

/** Runs all rounds of a row. A row that fails keeps its earlier rounds and does not end the run. */
async function measureRow(bench: Bench, row: Row): Promise<{ rounds: Measurements; error?: string }> {
  const measurements: Measurements = {};
  try {
    await runRounds(bench, row, measurements);
    return { rounds: measurements };
  } catch (error) {
    return { rounds: measurements, error: error instanceof Error ? error.message : String(error) };
  }
}

async function runRounds(bench: Bench, row: Row, measurements: Measurements): Promise<void> {
  const sides = row.sides.filter((side) => side === "floor" || bench.setup.productCommand);
  const count = Math.min(rounds, row.maxRounds ?? Number.POSITIVE_INFINITY);
  for (let round = 1; round <= count; round++) {
    for (const side of sides) {
      printProgress(`${row.name} ${side} ${round}/${count}`);
      measurements[side] ??= [];
      const ticksBefore = processorTicks();
      const startedAt = performance.now();
      const figures = await row.measure(bench, side);
      const ticksAfter = processorTicks();
      const otherTicks = ticksAfter.machine - ticksBefore.machine - (ticksAfter.own - ticksBefore.own);
      measurements[side].push({ ...figures, others: Math.max(0, otherTicks) / ((performance.now() - startedAt) / 10) });
    }
  }
}

try {
  await main();
} catch (error) {
  printProgress(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
