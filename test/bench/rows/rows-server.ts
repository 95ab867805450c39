// The server rows: one plain read, startup and memory of the binary, memory per known agent.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { findFreePort, residentMiB } from "../machine.ts";
import { seedAgents, serveCommand, startProduct } from "../product.ts";
import { type Bench, productFigure, productRatio, type Row, range } from "../row.ts";

export const get: Row = {
  name: "get",
  title: "GET one workspace, 64 connections; floor: raw Bun.serve route, same SELECT, same bytes",
  sides: ["floor", "product"],
  async measure(bench, side) {
    const sample = side === "floor" ? await bench.sample() : undefined;
    await using target = await bench.start(side, { agents: 1, sample });
    const plan = range(64).map(() => target.get());
    const result = await bench.driver.load(target.port, plan, { secs: bench.seconds });
    return {
      gets_per_s: result.gets_per_s,
      p50: result.get.p50,
      p99: result.get.p99,
      faults: result.errors,
      driver_busy: result.driver_busy,
    };
  },
  figures: { gets_per_s: "requests/s", p50: "p50 ms", p99: "p99 ms", faults: "faults", driver_busy: "driver busy" },
  verdicts: [
    {
      what: "requests/s, product / floor",
      target: ">= 0.5",
      value: productRatio("gets_per_s"),
      bound: 0.5,
      better: "higher",
      unit: "ratio",
    },
  ],
};

let folderCount = 0;
let bareBinary: Promise<string> | undefined;

async function compileBare(dir: string): Promise<string> {
  const outfile = join(dir, "bare");
  const entry = join(import.meta.dir, "..", "bare.ts");
  const build = Bun.spawn(
    [process.execPath, "build", "--compile", "--minify", "--bytecode", entry, "--outfile", outfile],
    { stdout: "ignore", stderr: "pipe" },
  );
  if ((await build.exited) !== 0) throw new Error(`bare.ts: ${await new Response(build.stderr).text()}`);
  return outfile;
}

export const start: Row = {
  name: "start",
  title: "Binary start to first answered request on an empty data directory; idle memory 2 s later (not pinned)",
  sides: ["floor", "product"],
  async measure(bench, side) {
    const startFor = async (path: string, settleMs: number) => {
      const port = await findFreePort();
      const dir = join(bench.setup.dir, `start-${++folderCount}`);
      mkdirSync(dir);
      bareBinary ??= compileBare(bench.setup.dir);
      const command =
        side === "floor"
          ? [await bareBinary, String(port)]
          : serveCommand(bench.setup.productCommand ?? [], port, join(dir, "data"));
      return await bench.driver.start(port, path, command, settleMs);
    };
    const { start_ms, rss_kib, pss_kib } = await startFor(side === "floor" ? "/" : "/healthz", 2000);
    const figures = { start_ms, rss_mb: rss_kib / 1024, pss_mb: pss_kib / 1024 };
    // The server already responds while it creates the routes, so this is measured separately.
    return side === "floor" ? figures : { ...figures, ready_ms: (await startFor("/readyz", 0)).start_ms };
  },
  figures: {
    start_ms: "start ms",
    ready_ms: "ready for all requests ms",
    rss_mb: "memory MB (resident)",
    pss_mb: "memory MB (proportional)",
  },
  verdicts: [
    {
      what: "spawn to first answered request, product / a bare compiled server",
      target: "<= 12",
      value: productRatio("start_ms"),
      bound: 12,
      better: "lower",
      unit: "ratio",
    },
    {
      what: "idle memory",
      target: "<= 80 MB",
      value: productFigure("rss_mb"),
      bound: 80,
      better: "lower",
      unit: "MB",
    },
  ],
};

const KNOWN_AGENTS = 10_000;
const FEW_AGENTS = 100;

/** The database's cache is limited, no matter what fills it. A small cache keeps it out of the difference. */
const CACHE_MB = "4";
/** An idle server collects its garbage after some seconds. */
const SETTLE_MS = 12_000;

/**
 * Measures the resident memory of a restarted server after 10,000 one-line PATCHes, spread evenly over its agents. The work does not depend
 * on the number of agents, so the difference is the cost of knowing them.
 */
async function measureMemory(bench: Bench, agents: number): Promise<{ restarted: number; touched: number }> {
  const { productCommand, core, dir } = bench.setup;
  if (!productCommand) throw new Error("there is no product to measure");
  const dataDir = join(dir, `known-${++folderCount}`);
  const options = { command: productCommand, core, dataDir, env: { SLIPWAY_DATABASE_CACHE_MB: CACHE_MB } };
  const seed = async () => {
    await using product = await startProduct(options);
    return await seedAgents(product, agents);
  };
  const seeded = await seed();
  await using product = await startProduct(options);
  await Bun.sleep(2000);
  const restarted = residentMiB(product.pid);
  const url = `${product.url}/api/v2/workspaceagents/me/logs`;
  for (let sentCount = 0; sentCount < KNOWN_AGENTS; sentCount += FEW_AGENTS) {
    const group = range(FEW_AGENTS).map((index) => seeded[(sentCount + index) % seeded.length]);
    const answers = await Promise.all(
      group.map((agent) => {
        const logs = [{ created_at: "2026-01-01T00:00:00Z", level: "info", output: "known" }];
        return fetch(url, {
          method: "PATCH",
          headers: { "content-type": "application/json", "Service-Session-Token": agent?.token ?? "" },
          body: JSON.stringify({ log_source_id: agent?.logSourceId, logs }),
        });
      }),
    );
    const failed = answers.find((answer) => !answer.ok);
    if (failed) throw new Error(`PATCH logs: ${failed.status} ${await failed.text()}`);
  }
  await Bun.sleep(SETTLE_MS);
  return { restarted, touched: residentMiB(product.pid) };
}

export const known: Row = {
  name: "known",
  title: "Memory per 10,000 known agents: each has sent one line since the restart",
  sides: ["product"],
  maxRounds: 1,
  async measure(bench) {
    const fewAgents = await measureMemory(bench, FEW_AGENTS);
    const manyAgents = await measureMemory(bench, KNOWN_AGENTS);
    const scale = KNOWN_AGENTS / (KNOWN_AGENTS - FEW_AGENTS);
    return {
      few_mb: fewAgents.touched,
      many_mb: manyAgents.touched,
      growth_mb: (manyAgents.touched - fewAgents.touched) * scale,
      restarted_growth_mb: (manyAgents.restarted - fewAgents.restarted) * scale,
    };
  },
  figures: {
    few_mb: "memory MB, 100 agents",
    many_mb: "memory MB, 10,000 agents",
    growth_mb: "growth MB",
    restarted_growth_mb: "growth MB, restarted and untouched",
  },
  verdicts: [
    {
      what: "memory per 10,000 known agents",
      target: "<= 20 MB",
      value: productFigure("growth_mb"),
      bound: 20,
      better: "lower",
      unit: "MB",
    },
  ],
};
