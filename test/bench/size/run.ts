// `bun test/bench/size/run.ts [--agents 240] [--check 200 --check 1000] [--constants FILE]`: measures the cost of each kind of work,
// then uses the capacity model (model.ts) to predict what mixed work costs for other agent counts, measures it, and prints both. Then
// predicts ten nodes and 50,000 agents.
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { describeMachine } from "../machine.ts";
import { calibrate, HEARTBEAT_S } from "./calibrate.ts";
import { type Constants, computeRequirements, type Kind, type Load, type Requirements } from "./model.ts";
import { type MeasuredWindow, openWorld } from "./world.ts";

const { values } = parseArgs({
  options: {
    agents: { type: "string", default: "240" },
    check: { type: "string", multiple: true, default: ["200", "1000"] },
    /** A file with costs that were measured earlier. If it does not exist, the measured costs are written to it. */
    constants: { type: "string" },
  },
});

const printLine = (text: string): void => void process.stdout.write(`${text}\n`);
const printProgress = (text: string): void => void process.stderr.write(`${text}\n`);
const SECONDS = 20;

/** Work per second of an agent and its users. `check` is busier than a usual day, so that there is something to measure. */
const MIX: Readonly<Record<"check" | "day", Readonly<Record<Kind, number>>>> = {
  check: {
    connect: 0,
    heartbeat: 1 / HEARTBEAT_S,
    stats: 1 / 30,
    metadata: 1 / 10,
    lines: 1 / 10,
    turn: 1 / 500,
    list: 1 / 200,
  },
  // Metadata every ten seconds, statistics every five minutes, a batch of lines per minute, a turn in ten minutes, a list per minute, and
  // one restart of everything per hour.
  day: {
    connect: 1 / 3600,
    heartbeat: 1 / HEARTBEAT_S,
    stats: 1 / 300,
    metadata: 1 / 10,
    lines: 1 / 60,
    turn: 1 / 600,
    list: 1 / 60,
  },
};
const toLoad = (agents: number, nodes: number, mix: keyof typeof MIX): Load => ({
  agents,
  nodes,
  per_s: Object.fromEntries(Object.entries(MIX[mix]).map(([kind, rate]) => [kind, rate * agents])) as Load["per_s"],
});

const formatValue = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(3);
const ROWS: readonly [
  string,
  (requirements: Requirements) => number,
  (measured: MeasuredWindow, memoryMb: number) => number,
][] = [
  ["batches/s", ({ node }) => node.batches_per_s, ({ batches, seconds }) => batches / seconds],
  ["commits/s", ({ database }) => database.groups_per_s, ({ groups, seconds }) => groups / seconds],
  ["writer busy", ({ node }) => node.writer_busy, ({ writing_ms, seconds }) => writing_ms / 1000 / seconds],
  ["KB/s to the database", ({ database }) => database.sent_per_s / 1000, ({ sent, seconds }) => sent / 1000 / seconds],
  [
    "KB/s from the database",
    ({ database }) => database.received_per_s / 1000,
    ({ received, seconds }) => received / 1000 / seconds,
  ],
  ["round trips/s", ({ database }) => database.trips_per_s, ({ round_trips, seconds }) => round_trips / seconds],
  ["cores of the node", ({ node }) => node.cores, ({ node_ms, seconds }) => node_ms / 1000 / seconds],
  [
    "cores of the database",
    ({ database }) => database.cores,
    ({ database_ms, seconds }) => database_ms / 1000 / seconds,
  ],
  ["NOTIFY/s", ({ database }) => database.notices_per_s, ({ notices, seconds }) => notices / seconds],
  ["memory of the node, MB", ({ node }) => node.memory_mb, (_, memoryMb) => memoryMb],
];

const loadConstants = async (agents: number): Promise<Constants> => {
  const file = values.constants;
  if (file && existsSync(file)) return (await Bun.file(file).json()) as Constants;
  await using world = await openWorld(agents);
  const constants = await calibrate(world, agents, printProgress);
  if (file) await Bun.write(file, JSON.stringify(constants, undefined, 2));
  return constants;
};

/** Runs the mix on one node with this many agents, and prints prediction and measurement. */
const check = async (agents: number, constants: Constants): Promise<void> => {
  await using world = await openWorld(agents);
  await world.measure({ connect: agents, seconds: HEARTBEAT_S });
  const load = toLoad(agents, 1, "check");
  const { connect: _, heartbeat: _heartbeat, ...per_s } = load.per_s;
  await world.measure({ seconds: 5, per_s });
  const measured = await world.measure({ seconds: SECONDS, per_s });
  const [predicted, memoryMb] = [computeRequirements(load, constants), world.memory()];
  printLine(`\n${agents} agents, ${SECONDS} s\n\n| | predicted | measured | error |\n|---|---|---|---|`);
  for (const [name, readPredicted, readMeasured] of ROWS) {
    const [predictedValue, measuredValue] = [readPredicted(predicted), readMeasured(measured, memoryMb)];
    printLine(
      `| ${name} | ${formatValue(predictedValue)} | ${formatValue(measuredValue)} | ${measuredValue > 0 ? `${((predictedValue / measuredValue - 1) * 100).toFixed(0)} %` : "-"} |`,
    );
  }
};

const constants = await loadConstants(Number(values.agents));
printLine(`${describeMachine()}\n\n${JSON.stringify(constants, undefined, 2)}`);
for (const agents of values.check.filter((agents) => agents !== "0")) await check(Number(agents), constants);
for (const [agents, nodes] of [
  [1000, 1],
  [5000, 1],
  [5000, 3],
  [50_000, 10],
] as const) {
  const { node, database } = computeRequirements(toLoad(agents, nodes, "day"), constants);
  printLine(`\n${agents} agents on ${nodes}`);
  for (const [name, value] of Object.entries({
    ...node,
    ...Object.fromEntries(Object.entries(database).map(([k, v]) => [`database ${k}`, v])),
  }))
    printLine(`| ${name} | ${formatValue(value)} |`);
}
process.exit(0);
