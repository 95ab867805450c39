// The row of curves: the server's cost of one operation with 1, 10, 100 and more objects, and the exponent of its growth. A cost that
// doubles with the count has the exponent 1; a constant cost has 0.

import { join } from "node:path";
import { seedMany } from "#test/support/seed-many.ts";
import { processorMs, waitUntilIdle } from "../machine.ts";
import { type Product, startProduct, startProductWith } from "../product.ts";
import { type Bench, type Figures, productFigure, type Row, range } from "../row.ts";
import { seedAudit } from "../seeds/seed-audit.ts";
import { seedChats } from "../seeds/seed-chats.ts";

type Curve = {
  readonly name: string;
  readonly what: string;
  readonly unit: string;
  readonly counts: readonly number[];
  /** The maximum exponent. */
  readonly maxExponent: number;
  cost(bench: Bench, count: number): Promise<number>;
};

const READS = 300;
const LINES = 100;

let dirCount = 0;
const createDir = (bench: Bench): string => join(bench.setup.dir, `curves-${++dirCount}`);

const start = (bench: Bench, dataDir: string): Promise<Product> =>
  startProduct({ command: bench.setup.productCommand ?? [], dataDir, core: bench.setup.core });

/**
 * Measures the server's CPU milliseconds for one GET after a warm-up: a new server loads its actors, which takes half a second for 10,000.
 */
const measureReadCost = async (product: Product, path: string): Promise<number> => {
  const headers = { "Service-Session-Token": product.adminToken };
  const read = async (): Promise<void> => {
    const response = await fetch(product.url + path, { headers });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
  };
  for (const _ of range(READS / 3)) await read();
  await waitUntilIdle(product.pid);
  const cpuBefore = processorMs(product.pid);
  for (const _ of range(READS)) await read();
  return (processorMs(product.pid) - cpuBefore) / READS;
};

/** Measures the server's CPU milliseconds per 1,000 lines or deliveries that the driver counts. */
const measureLoadCost = async (
  bench: Bench,
  { agents, followers, lines }: { readonly agents: number; readonly followers: number; readonly lines: number },
  counted: "lines_per_s" | "deliveries_per_s",
): Promise<number> => {
  await using target = await bench.start("product", { agents });
  const plan = [...range(agents).map(target.patch), ...range(followers).map((index) => target.follow(index % agents))];
  const cpuBefore = processorMs(target.pid);
  const result = await bench.driver.load(target.port, plan, { secs: bench.seconds, warm: 0, lines });
  return ((processorMs(target.pid) - cpuBefore) / (result[counted] * result.seconds)) * 1000;
};

const CURVES: readonly Curve[] = [
  {
    name: "agents",
    what: "1,000 log lines, by agents that send them",
    unit: "processor ms",
    counts: [1, 10, 100, 1_000],
    maxExponent: 0.1,
    cost: (bench, agents) => measureLoadCost(bench, { agents, followers: 0, lines: LINES }, "lines_per_s"),
  },
  {
    name: "followers",
    what: "1,000 deliveries, by followers of one agent",
    unit: "processor ms",
    counts: [1, 10, 100, 1_000],
    maxExponent: 0,
    cost: (bench, followers) => measureLoadCost(bench, { agents: 1, followers, lines: 1 }, "deliveries_per_s"),
  },
  {
    name: "known",
    what: "a read of one workspace, by workspaces",
    unit: "processor ms",
    counts: [1, 10, 100, 1_000, 10_000],
    maxExponent: 0.1,
    async cost(bench, workspaces) {
      const [product, seeded] = await startProductWith(bench, (store, now) => seedMany(store, now, { workspaces }));
      await using _ = product;
      return await measureReadCost(product, `/api/v2/workspaces/${seeded.workspaces[0]}`);
    },
  },
  {
    name: "list",
    what: "the first 25 of a list, by workspaces",
    unit: "processor ms",
    counts: [100, 1_000, 10_000],
    maxExponent: 0.1,
    async cost(bench, workspaces) {
      const [product] = await startProductWith(bench, (store, now) => seedMany(store, now, { workspaces }));
      await using _ = product;
      return await measureReadCost(product, "/api/v2/workspaces?limit=25");
    },
  },
  {
    name: "chats",
    what: "the first page of chats, by chats",
    unit: "processor ms",
    counts: [100, 1_000, 10_000],
    maxExponent: 0.1,
    async cost(bench, chats) {
      const dataDir = createDir(bench);
      await (await start(bench, dataDir))[Symbol.asyncDispose]();
      await seedChats(dataDir, chats, chats * 10);
      await using product = await start(bench, dataDir);
      return await measureReadCost(product, "/api/v2/chats");
    },
  },
  {
    name: "rows",
    what: "the first page of the audit log, by entries",
    unit: "processor ms",
    counts: [1_000, 10_000, 100_000, 1_000_000],
    maxExponent: 0.1,
    async cost(bench, entries) {
      const dataDir = createDir(bench);
      await (await start(bench, dataDir))[Symbol.asyncDispose]();
      seedAudit(join(dataDir, "slipway.db"), Date.now(), entries);
      await using product = await start(bench, dataDir);
      return await measureReadCost(product, "/api/v2/audit?limit=25");
    },
  },
];

/**
 * Returns the slope of a straight line through the logarithms of counts and costs: costs grow like `count ** slope`. Costs below 0.01 are
 * treated as 0.01.
 */
export const fitExponent = (points: readonly (readonly [count: number, cost: number])[]): number => {
  const logs = points.map(([count, cost]) => [Math.log(count), Math.log(Math.max(cost, 0.01))] as const);
  const mean = (index: 0 | 1): number => logs.reduce((sum, point) => sum + point[index], 0) / logs.length;
  const [x, y] = [mean(0), mean(1)];
  const [numerator, denominator] = logs.reduce(([a, b], [u, v]) => [a + (u - x) * (v - y), b + (u - x) ** 2], [0, 0]);
  return numerator / denominator;
};

const pointName = (curve: Curve, count: number): string => `${curve.name}_${count}`;

export const curves: Row = {
  name: "curves",
  title: "Cost of one operation against the count of something, with the exponent by which it grows",
  sides: ["product"],
  maxRounds: 1,
  async measure(bench) {
    const figures: Figures = {};
    for (const curve of CURVES) {
      const points: [number, number][] = [];
      for (const count of curve.counts) points.push([count, await curve.cost(bench, count)]);
      for (const [count, cost] of points) figures[pointName(curve, count)] = cost;
      figures[`${curve.name}_exponent`] = fitExponent(points);
    }
    return figures;
  },
  figures: Object.fromEntries(
    CURVES.flatMap((curve) => [
      ...curve.counts.map((count) => [
        pointName(curve, count),
        `${curve.what}: ${count.toLocaleString("en")}, ${curve.unit}`,
      ]),
      [`${curve.name}_exponent`, `${curve.what}: exponent`],
    ]),
  ),
  verdicts: CURVES.map((curve) => ({
    what: `exponent of the cost of ${curve.what}`,
    target: `<= ${curve.maxExponent}`,
    value: productFigure(`${curve.name}_exponent`),
    bound: curve.maxExponent,
    better: "lower" as const,
    unit: "count" as const,
  })),
};
