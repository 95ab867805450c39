// `bun run bench`: measures the product and the baseline in turn, and prints each row as soon as it is measured, with ratios and targets.
// Never part of the tests; a missed target is a line in the table. Exits with 1 if a row could not be measured, and with --check if a ratio
// is worse than in earlier runs.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Driver } from "./driver.ts";
import { describeMachine, findFileSystem, pickCores, processorTicks } from "./machine.ts";
import { productCommand } from "./product.ts";
import { formatFigureTables, type Measurements, type RowResult, verdictTable, withResults } from "./report.ts";
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

/** Interrupts also count as other programs, so it is never quite 0. */
const others = "cores used by other programs";

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

/** `web` selects all rows with that prefix. */
const matchesName = (name: string, wanted: string): boolean => name === wanted || name.startsWith(`${wanted}-`);

const help = `bun run bench [options]
  --rounds N     rounds of each row, floor and product in turn (default 5; long rows run fewer)
  --only ROW     only this row, or all that begin so (web); may be given again: ${rows.map((row) => row.name).join(", ")}
  --seconds N    length of a measured window (default 3)
  --stall N      seconds the stalled followers do not read (default 60)
  --floor        only the floor, without the product
  --product FILE the binary to measure (default dist/slipway, else the source)
  --dir DIR      where databases are written (default the system's temporary folder)
  --quick        the rows that say most, one round of one second each: about three minutes, for --check
  --check        compare the ratios with the last five runs of each row; exit with 1 when one is worse by more than its noise
  --no-write     store no results`;

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

const QUICK = ["ingest", "steady", "get", "fanout", "start", "tunnel", "proxy", "tokens", "latency", "send"];
/** Defaults depend on --quick. */
const rounds = Number(options.rounds ?? (options.quick ? 1 : 5));
const seconds = Number(options.seconds ?? (options.quick ? 1 : 3));
const RESULTS = join(import.meta.dir, "../results/bench");
const README = join(import.meta.dir, "README.md");

const printLine = (text: string): void => void process.stdout.write(`${text}\n`);
const note = (text: string): void => void process.stderr.write(`${text}\n`);

async function main(): Promise<void> {
  if (options.help) return printLine(help);
  const unknown = options.only?.find((name) => !rows.some((row) => matchesName(row.name, name)));
  if (unknown) throw new Error(`There is no row "${unknown}".\n${help}`);
  const only = options.only ?? (options.quick ? QUICK : undefined);
  const chosen = rows.filter((row) => !only || only.some((name) => matchesName(row.name, name)));
  const cores = pickCores();
  if (!cores) note("No second core or no taskset: server and driver share cores, ratios will be rough.");
  const dir = mkdtempSync(join(options.dir, "slipway-bench-"));
  try {
    if (["tmpfs", "ramfs"].includes(findFileSystem(dir)))
      note(`${dir} is in memory: commits cost nothing there. Use --dir.`);
    const command = options.floor ? undefined : productCommand(options.product);
    if (!command) note("No product to measure: the floor alone.");
    const sides: BenchSetup = { dir, core: cores?.server, productCommand: command };
    let sample: Promise<string> | undefined;
    let limit: Promise<number> | undefined;
    const bench: Bench = {
      driver: await Driver.compile(dir, cores?.driver),
      sides,
      seconds,
      stallSeconds: Number(options.stall),
      start: (side, needs) => startSide(sides, side, needs),
      sample: () => (sample ??= writeSample(sides)),
      floorLimit: () => (limit ??= measureIngest(bench, "floor").then(({ lines_per_s }) => lines_per_s as number)),
    };
    const product = command === undefined ? "floor only" : command.length > 1 ? "from source" : "compiled binary";
    const machine = `${describeMachine()}, ${findFileSystem(dir)}`;
    const run: StoredRun = { date: new Date().toISOString(), commit: revision(), machine, product, rows: [] };
    const earlier = readRuns(RESULTS);
    printLine(`${run.date.slice(0, 10)}, ${run.commit}: ${machine}. Product: ${product}.\n`);
    for (const row of chosen) {
      const { rounds, error } = await measureRow(bench, row);
      run.rows.push({ name: row.name, rounds, ...(error === undefined ? {} : { error }) });
      const result = { row: { ...row, figures: { ...row.figures, others } }, rounds };
      printLine(
        error === undefined
          ? `${formatFigureTables([result])}\n\n${verdictTable([result])}\n`
          : `**${row.name}** failed: ${error}\n`,
      );
      if (!options["no-write"]) writeRun(RESULTS, run);
    }
    if (!options["no-write"]) await Bun.write(README, withResults(readFileSync(README, "utf8"), formatNewestTable()));
    const failed = run.rows.filter(({ error }) => error !== undefined);
    if (failed.length > 0) {
      note(`Could not measure: ${failed.map(({ name }) => name).join(", ")}.`);
      process.exitCode = 1;
    }
    if (options.check) check(run, earlier);
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
  return `Last run: ${last?.machine}. Product: ${last?.product}.\n\n${verdictTable(newest)}`;
}

/** Returns the measured commit, with `+` if files differ from it. */
function revision(): string {
  const git = (...words: string[]) =>
    Bun.spawnSync(["git", "-C", import.meta.dir, ...words], { stderr: "ignore" })
      .stdout.toString()
      .trim();
  const isChanged = git("status", "--porcelain", "--untracked-files=no", "--", ":/src", ":/actors", ":/db") !== "";
  return `${git("rev-parse", "--short", "HEAD") || "unknown"}${isChanged ? "+" : ""}`;
}

/** Reports ratios that are worse than in earlier runs by more than their noise; the exit code is then 1. */
function check(run: StoredRun, earlier: readonly StoredRun[]): void {
  const regressions = findRegressions(rows, run, earlier);
  for (const { row, what, now, before, limit } of regressions) {
    note(
      `${row}: ${what} is ${now.toPrecision(3)}, was ${before.toPrecision(3)} (noise up to ${limit.toPrecision(3)}).`,
    );
  }
  if (regressions.length > 0) process.exitCode = 1;
  else note("No ratio is worse than before by more than its noise.");
}

/** Runs all rounds of a row; a row that fails keeps its earlier rounds and does not end the run. */
async function measureRow(bench: Bench, row: Row): Promise<{ rounds: Measurements; error?: string }> {
  const done: Measurements = {};
  try {
    await runRounds(bench, row, done);
    return { rounds: done };
  } catch (error) {
    return { rounds: done, error: error instanceof Error ? error.message : String(error) };
  }
}

async function runRounds(bench: Bench, row: Row, done: Measurements): Promise<void> {
  const sides = row.sides.filter((side) => side === "floor" || bench.sides.productCommand);
  const count = Math.min(rounds, row.maxRounds ?? Number.POSITIVE_INFINITY);
  for (let round = 1; round <= count; round++) {
    for (const side of sides) {
      note(`${row.name} ${side} ${round}/${count}`);
      done[side] ??= [];
      const before = processorTicks();
      const from = performance.now();
      const figures = await row.measure(bench, side);
      const after = processorTicks();
      const foreign = after.machine - before.machine - (after.own - before.own);
      done[side].push({ ...figures, others: Math.max(0, foreign) / ((performance.now() - from) / 10) });
    }
  }
}

try {
  await main();
} catch (error) {
  note(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
