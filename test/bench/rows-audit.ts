// The rows about audit: pages of a long audit log by many filters, and what auditing and figures cost where logs come in. The product
// alone; the targets are a time and a share.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startProduct } from "./product.ts";
import { type Figures, faults, productFigure, type Row, range } from "./row.ts";
import { seedAudit } from "./seed-audit.ts";

const ENTRIES = Number(process.env.BENCH_AUDIT ?? 5_000_000);
const ROUNDS = 40;
const DAY = 86_400_000;

const percentile = (times: readonly number[], share: number): number => {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
};

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Filters as people use them; `n` makes each question a new one. */
const QUESTIONS: Readonly<Record<string, (n: number) => string>> = {
  newest: () => "",
  kind: (n) => ["workspace_build", "chat", "template", "user"][n % 4] ?? "user",
  kind_and_action: (n) => `resource_type:${n % 2 ? "user" : "api_key"} action:${n % 2 ? "delete" : "login"}`,
  action: (n) => `action:${n % 2 ? "delete" : "write"}`,
  person: (n) => `username:person-${(n * 37) % 500}`,
  person_and_kind: (n) => `username:person-${(n * 41) % 500} resource_type:template action:write`,
  thing: (n) => `resource_target:thing-${(n * 997) % 40_000}`,
  days: (n) => `date_from:${dayOf(Date.now() - (n * 20 + 9) * DAY)} date_to:${dayOf(Date.now() - n * 20 * DAY)}`,
  kind_and_days: (n) => `chat date_to:${dayOf(Date.now() - n * 25 * DAY)}`,
  reason: () => "build_reason:autostart",
};

export const audit: Row = {
  name: "audit",
  title: `Pages of 25 of an audit log of ${ENTRIES.toLocaleString("en")} entries, ten kinds of filter, one after the other`,
  sides: ["product"],
  maxRounds: 1,
  async measure(bench) {
    const { productCommand: command, core, dir } = bench.sides;
    if (!command) throw new Error("there is no product to measure");
    const dataDir = join(dir, `audit-${crypto.randomUUID()}`);
    mkdirSync(dataDir);
    const options = { command, core, dataDir };
    await (await startProduct(options))[Symbol.asyncDispose]();
    const seeded = seedAudit(join(dataDir, "slipway.db"), Date.now(), ENTRIES);
    await using product = await startProduct(options);
    const headers = { "Service-Session-Token": product.adminToken };
    const timed = async (q: string, more = ""): Promise<number> => {
      const from = performance.now();
      const path = `/api/v2/audit?limit=25${more}&q=${encodeURIComponent(q)}`;
      const response = await fetch(product.url + path, { headers });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`${path}: ${response.status}`);
      return performance.now() - from;
    };
    const figures: Figures = { seeded };
    const all: number[] = [];
    for (const [name, question] of Object.entries(QUESTIONS)) {
      const times: number[] = [];
      for (let n = 0; n < ROUNDS; n++) times.push(await timed(question(n)));
      all.push(...times);
      figures[`${name}_p50`] = percentile(times, 0.5);
      figures[`${name}_worst`] = Math.max(...times);
    }
    figures.all_p50 = percentile(all, 0.5);
    figures.all_p99 = percentile(all, 0.99);
    figures.far = await timed("", `&offset=${Math.floor(ENTRIES / 50)}`);
    return figures;
  },
  figures: {
    ...Object.fromEntries(
      Object.keys(QUESTIONS).flatMap((name) => [
        [`${name}_p50`, `${name.replaceAll("_", " ")} p50 ms`],
        [`${name}_worst`, `${name.replaceAll("_", " ")} worst ms`],
      ]),
    ),
    ...{
      all_p50: "all p50 ms",
      all_p99: "all p99 ms",
      far: "a page by offset, a fiftieth down, ms",
      seeded: "seconds to make the log",
    },
  },
  verdicts: [
    {
      what: `audit list over ${ENTRIES.toLocaleString("en")} entries, filtered, p99`,
      target: "<= 50 ms",
      value: productFigure("all_p99"),
      bound: 50,
      better: "lower",
      unit: "ms",
    },
  ],
};

const PAIRS = 5;

/** Processor time that a process has had, in ticks of the kernel: says the same on a machine that is wanted by others. */
const ticksOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
};

export const auditCost: Row = {
  name: "audit-cost",
  title: "The load of `ingest` with and without figures for Prometheus, in turn; auditing is always on",
  sides: ["product"],
  maxRounds: 1,
  async measure(bench) {
    const once = async (env: Record<string, string>): Promise<Figures> => {
      await using target = await bench.start("product", { agents: 8, env });
      const plan = [...range(8).map(target.patch), ...range(8).map(target.follow)];
      const before = ticksOf(target.pid);
      const result = await bench.driver.load(target.port, plan, { secs: bench.seconds });
      const lines = result.lines_per_s * bench.seconds;
      return { lines_per_tick: lines / (ticksOf(target.pid) - before), ...faults(result) };
    };
    const shares: number[] = [];
    let broken = 0;
    for (let pair = 0; pair < PAIRS; pair++) {
      // Which goes first changes, so that a machine that becomes slower favours neither.
      const order = pair % 2 === 0 ? [{}, METERED] : [METERED, {}];
      const measured = [await once(order[0] ?? {}), await once(order[1] ?? {})];
      const [plain, metered] = pair % 2 === 0 ? measured : [...measured].reverse();
      shares.push((metered?.lines_per_tick ?? 0) / (plain?.lines_per_tick || 1));
      broken += (plain?.faults ?? 0) + (metered?.faults ?? 0);
    }
    return {
      share: percentile(shares, 0.5),
      lowest: Math.min(...shares),
      highest: Math.max(...shares),
      faults: broken,
    };
  },
  figures: {
    ...{
      share: "lines for the same processor time, with figures / without, median of pairs",
      lowest: "lowest pair",
      highest: "highest pair",
    },
    faults: "faults",
  },
  verdicts: [
    {
      what: "lines for the same processor time, with figures and auditing / without figures",
      target: ">= 0.97",
      value: productFigure("share"),
      bound: 0.97,
      better: "higher",
      unit: "ratio",
    },
  ],
};

const METERED = { SLIPWAY_METRICS_ADDRESS: "127.0.0.1:0" };
