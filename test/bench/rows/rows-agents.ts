// The row about idle connected agents: the server's memory and responsiveness.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { PlanLine } from "../driver.ts";
import { pickCores, pinToCore, residentMiB } from "../machine.ts";
import { seedAgents, startProduct } from "../product.ts";
import { productFigure, type Row } from "../row.ts";

const AGENTS = 5_000;
/** In this time, every agent is pinged at least twice. */
const WINDOW_S = 32;

let folderCount = 0;

type Heartbeats = AsyncDisposable & { end(): Promise<{ answered: number; lost: number }> };

/** Connects an agent for each token. Resolves once all of them are connected. */
async function connectAgents(url: string, tokens: readonly string[], dir: string): Promise<Heartbeats> {
  const file = join(dir, "tokens.json");
  await Bun.write(file, JSON.stringify(tokens));
  const program = join(import.meta.dir, "..", "heartbeats.ts");
  const child = Bun.spawn(pinToCore(pickCores()?.driver, [process.execPath, program, url, file]), {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  const readLine = async (): Promise<string> => {
    const { value } = await reader.read();
    if (!value) throw new Error("the agents of the benchmark have ended");
    return new TextDecoder().decode(value).trim();
  };
  if ((await readLine()) !== "ready") throw new Error("the agents of the benchmark could not connect");
  return {
    async end() {
      child.stdin.end();
      return JSON.parse(await readLine()) as { answered: number; lost: number };
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** Returns the row for this many agents. */
export const heartbeatRow = (count: number): Row => ({
  name: "agents",
  title: `${count.toLocaleString("en")} connected agents that only heartbeat (not pinned together with them)`,
  sides: ["product"],
  maxRounds: 1,
  async measure(bench) {
    const { productCommand, core, dir } = bench.setup;
    if (!productCommand) throw new Error("there is no product to measure");
    const folder = join(dir, `agents-${++folderCount}`);
    mkdirSync(folder);
    const options = { command: productCommand, core, dataDir: join(folder, "data") };
    const seed = async () => {
      await using product = await startProduct(options);
      return await seedAgents(product, count);
    };
    const seeded = await seed();
    await using product = await startProduct(options);
    const alone_mb = residentMiB(product.pid);
    await using agents = await connectAgents(
      product.url,
      seeded.map(({ token }) => token),
      folder,
    );
    const probeLine: PlanLine = { kind: "probe", path: "/healthz", token: "none" };
    const { probe } = await bench.driver.load(product.port, [probeLine], { secs: WINDOW_S, warm: 2, probe_us: 1000 });
    const memory_mb = residentMiB(product.pid);
    const { answered, lost } = await agents.end();
    return {
      alone_mb,
      memory_mb,
      kib_each: ((memory_mb - alone_mb) * 1024) / count,
      loop_p50: probe.p50,
      loop_p99: probe.p99,
      loop_max: probe.max,
      answered,
      lost,
    };
  },
  figures: {
    alone_mb: "memory MB without them",
    memory_mb: "memory MB with them",
    kib_each: "KB each",
    loop_p50: "GET /healthz p50 ms",
    loop_p99: "GET /healthz p99 ms",
    loop_max: "GET /healthz longest ms",
    answered: "pings answered",
    lost: "connections lost",
  },
  verdicts: [
    {
      what: "memory of the whole server",
      target: "< 400 MB",
      value: productFigure("memory_mb"),
      bound: 400,
      better: "lower",
      unit: "MB",
    },
    {
      what: "event-loop delay during the run, as a GET every ms sees it, p99",
      target: "< 10 ms",
      value: productFigure("loop_p99"),
      bound: 10,
      better: "lower",
      unit: "ms",
    },
    {
      what: "connections lost",
      target: "0",
      value: productFigure("lost"),
      bound: 0,
      better: "lower",
      unit: "count",
    },
  ],
});

export const agents: Row = heartbeatRow(AGENTS);
