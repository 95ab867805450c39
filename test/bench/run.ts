// `bun run bench`: measures the product beside the floor, rounds interleaved, and prints ratios against the targets.
// Never part of the tests; a missed target is a line in the table, not an exit code. Stops with a message when it cannot measure.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Driver } from "./driver.ts";
import { describeMachine, fileSystemOf, pinnedCores, processorTicks } from "./machine.ts";
import { productCommand } from "./product.ts";
import { figureTables, type RowResult, verdictTable, withResults } from "./report.ts";
import type { Bench, Row } from "./row.ts";
import { agents } from "./rows/rows-agents.ts";
import { audit, auditCost } from "./rows/rows-audit.ts";
import { backup } from "./rows/rows-backup.ts";
import { latency, send, tokens } from "./rows/rows-chats.ts";
import { chatsAtScale } from "./rows/rows-chats-at-scale.ts";
import { cluster } from "./rows/rows-cluster.ts";
import { insights } from "./rows/rows-insights.ts";
import { fanout, idle, ingest, stalled, steady } from "./rows/rows-logs.ts";
import { network } from "./rows/rows-network.ts";
import { networkCrowd } from "./rows/rows-network-crowd.ts";
import { networkSsh } from "./rows/rows-network-ssh.ts";
import { threeNodes } from "./rows/rows-nodes.ts";
import { proxy } from "./rows/rows-proxy.ts";
import { get, known, start } from "./rows/rows-server.ts";
import { terraform } from "./rows/rows-terraform.ts";
import { tools } from "./rows/rows-tools.ts";
import { terminal, tunnel } from "./rows/rows-tunnel.ts";
import { web } from "./rows/rows-web.ts";
import { builds, list, watchers } from "./rows/rows-workspaces.ts";
import { type Sides, startSide, writeSample } from "./sides.ts";

/** Interrupts are counted as others' too, so that it is never quite 0. */
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
  tools,
  list,
  builds,
  watchers,
  chatsAtScale,
  insights,
  audit,
  auditCost,
  backup,
  ...terraform,
  cluster,
  threeNodes,
  ...web,
];

/** `web` means all whose names begin so. */
const isAsked = (name: string, wanted: string): boolean => name === wanted || name.startsWith(`${wanted}-`);

const help = `bun run bench [options]
  --rounds N     rounds of each row, floor and product in turn (default 5; long rows run fewer)
  --only ROW     only this row, or all that begin so (web); may be given again: ${rows.map((row) => row.name).join(", ")}
  --seconds N    length of a measured window (default 3)
  --stall N      seconds the stalled followers do not read (default 60)
  --floor        only the floor, without the product
  --product FILE the binary to measure (default dist/slipway, else the source)
  --dir DIR      where databases are written (default the system's temporary folder)
  --no-write     leave README.md as it is`;

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    only: { type: "string", multiple: true },
    seconds: { type: "string", default: "3" },
    stall: { type: "string", default: "60" },
    floor: { type: "boolean", default: false },
    product: { type: "string" },
    dir: { type: "string", default: tmpdir() },
    "no-write": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const note = (text: string): void => void process.stderr.write(`${text}\n`);

async function main(): Promise<void> {
  if (options.help) return say(help);
  const unknown = options.only?.find((name) => !rows.some((row) => isAsked(row.name, name)));
  if (unknown) throw new Error(`There is no row "${unknown}".\n${help}`);
  const chosen = rows.filter((row) => !options.only || options.only.some((name) => isAsked(row.name, name)));
  const cores = pinnedCores();
  if (!cores) note("No second core or no taskset: server and driver share cores, ratios will be rough.");
  const dir = mkdtempSync(join(options.dir, "slipway-bench-"));
  try {
    if (["tmpfs", "ramfs"].includes(fileSystemOf(dir)))
      note(`${dir} is in memory: commits cost nothing there. Use --dir.`);
    const command = options.floor ? undefined : productCommand(options.product);
    if (!command) note("No product to measure: the floor alone.");
    const sides: Sides = { dir, core: cores?.server, productCommand: command };
    let sample: Promise<string> | undefined;
    const bench: Bench = {
      driver: await Driver.compile(dir, cores?.driver),
      sides,
      seconds: Number(options.seconds),
      stallSeconds: Number(options.stall),
      start: (side, needs) => startSide(sides, side, needs),
      sample: () => (sample ??= writeSample(sides)),
    };
    const results: RowResult[] = [];
    for (const row of chosen) results.push(await runRow(bench, row));
    const kind = command === undefined ? "floor only" : command.length > 1 ? "from source" : "compiled binary";
    const date = new Date().toISOString().slice(0, 10);
    const head = `Measured on ${date}: ${describeMachine()}, ${fileSystemOf(dir)}. Product: ${kind}.`;
    const block = `${head}\n\n${verdictTable(results)}\n\n${figureTables(results)}`;
    say(block);
    const readme = join(import.meta.dir, "README.md");
    if (!options["no-write"]) await Bun.write(readme, withResults(readFileSync(readme, "utf8"), block));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function runRow(bench: Bench, row: Row): Promise<RowResult> {
  const rounds: RowResult["rounds"] = {};
  const sides = row.sides.filter((side) => side === "floor" || bench.sides.productCommand);
  const count = Math.min(Number(options.rounds), row.maxRounds ?? Number.POSITIVE_INFINITY);
  for (let round = 1; round <= count; round++) {
    for (const side of sides) {
      note(`${row.name} ${side} ${round}/${count}`);
      rounds[side] ??= [];
      const before = processorTicks();
      const from = performance.now();
      const figures = await row.measure(bench, side);
      const after = processorTicks();
      const foreign = after.machine - before.machine - (after.own - before.own);
      rounds[side].push({ ...figures, others: Math.max(0, foreign) / ((performance.now() - from) / 10) });
    }
  }
  return { row: { ...row, figures: { ...row.figures, others } }, rounds };
}

try {
  await main();
} catch (error) {
  note(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
