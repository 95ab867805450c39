// The row about many clients at one relay: clients with tunnels to agents, most of which type while some download; and the delay of the
// server's event loop in that time.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { readLoopDelay } from "../loop-delay.ts";
import { findFreePort, processorMs, residentMiB } from "../machine.ts";
import type { Crowd, CrowdSeen } from "../network-peers.ts";
import { seedAgents, startProduct } from "../product.ts";
import { productFigure, type Row } from "../row.ts";

const AGENTS = 100;
const CLIENTS = 200;
const BULK = 10;
const SECONDS = 10;

let folderCount = 0;

/** Starts peers in a separate process. Resolves once all are connected. */
const startPeers = async (role: "agents" | "clients", file: string) => {
  const program = join(import.meta.dir, "..", "network-peers.ts");
  const child = Bun.spawn([process.execPath, program, role, file], { stdio: ["pipe", "pipe", "inherit"] });
  const reader = child.stdout.getReader();
  const readLine = async (): Promise<string> => {
    const { value } = await reader.read();
    if (!value) throw new Error(`the ${role} of the benchmark have ended`);
    return new TextDecoder().decode(value).trim();
  };
  if ((await readLine()) !== "ready") throw new Error(`the ${role} of the benchmark could not connect`);
  return {
    async run(): Promise<CrowdSeen> {
      child.stdin.write("go\n");
      await child.stdin.flush();
      return JSON.parse(await readLine()) as CrowdSeen;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
};

export const networkCrowd: Row = {
  name: "network-crowd",
  title: `${CLIENTS} clients with tunnels to ${AGENTS} agents through one relay, ${BULK} of them downloading and the others typing; peers are not pinned`,
  sides: ["product"],
  maxRounds: 3,
  async measure(bench) {
    const { productCommand, dir, core } = bench.setup;
    if (!productCommand) throw new Error("there is no product to measure");
    const folder = join(dir, `crowd-${++folderCount}`);
    mkdirSync(folder);
    const metrics = `127.0.0.1:${await findFreePort()}`;
    await using product = await startProduct({
      command: productCommand,
      core,
      dataDir: join(folder, "data"),
      env: { SLIPWAY_METRICS_ADDRESS: metrics },
    });
    const seeded = await seedAgents(product, AGENTS);
    const memoryBefore = residentMiB(product.pid);
    const crowd: Crowd = {
      url: product.url,
      admin_token: product.adminToken,
      agents: seeded.map(({ agentId, token }) => ({ id: agentId, token })),
      clients: CLIENTS,
      bulk: BULK,
      seconds: SECONDS,
    };
    const file = join(folder, "crowd.json");
    await Bun.write(file, JSON.stringify(crowd));
    await using _agents = await startPeers("agents", file);
    await using clients = await startPeers("clients", file);
    const memoryConnected = residentMiB(product.pid);
    await readLoopDelay(`http://${metrics}/metrics`);
    const cpuBefore = processorMs(product.pid);
    const results = await clients.run();
    const delay = await readLoopDelay(`http://${metrics}/metrics`);
    return {
      ...results,
      loop_p50: delay.p50,
      loop_p99: delay.p99,
      loop_max: delay.max,
      server_share: (processorMs(product.pid) - cpuBefore) / (SECONDS * 1_000),
      idle_kb: ((memoryConnected - memoryBefore) * 1024) / CLIENTS,
    };
  },
  figures: {
    loop_p50: "delay of the server's event loop p50 ms",
    loop_p99: "delay of the server's event loop p99 ms",
    loop_max: "delay of the server's event loop, longest ms",
    server_share: "cores the server used",
    bulk_mb_per_s: "MB/s of all downloads",
    keys: "keys typed",
    echo_p50: "echo p50 ms",
    echo_p99: "echo p99 ms",
    failed: "clients that failed",
    idle_kb: "server's memory KB for each client with half an agent",
  },
  verdicts: [
    {
      what: `delay of the event loop with ${CLIENTS} clients and ${AGENTS} agents at one relay, p99`,
      target: "< 10 ms",
      value: productFigure("loop_p99"),
      bound: 10,
      better: "lower",
      unit: "ms",
    },
    {
      what: "clients that failed",
      target: "0",
      value: productFigure("failed"),
      bound: 0,
      better: "lower",
      unit: "count",
    },
  ],
};
