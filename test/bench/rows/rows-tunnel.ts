// The workspace rows: a request to the daemon through the tunnel, and a key echoed by a terminal.
import { mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findFreePort, pinToCore } from "../machine.ts";
import { startServer } from "../process.ts";
import { seedAgents, startProduct } from "../product.ts";
import { type Bench, productRatio, type Row, range } from "../row.ts";

const KEYS = 3_000;
/** Warm-up keys: the first thousands of a server take four times the CPU time of later ones. */
const WARM_UP_KEYS = 9_000;
const WARM_UP_S = 4;
const BATCH_SIZE = 16;

/** Starts the product with one connected daemon. `folder` contains the daemon's socket; `apps` is the path of its ports and apps. */
export const startReachableAgent = async ({ setup }: Bench) => {
  if (!setup.productCommand) throw new Error("there is no product to measure");
  const dir = mkdtempSync(join(setup.dir, "reach-"));
  const stack = new AsyncDisposableStack();
  const product = stack.use(
    await startProduct({ command: setup.productCommand, dataDir: join(dir, "data"), core: setup.core }),
  );
  const [agent] = await seedAgents(product, 1);
  if (!agent) throw new Error("no agent was seeded");
  const [home, folder] = [join(dir, "home"), join(dir, "t")];
  for (const newFolder of [home, folder]) mkdirSync(newFolder);
  const daemon = Bun.spawn(pinToCore(setup.core, [...setup.productCommand, "agent"]), {
    env: {
      PATH: process.env.PATH ?? "",
      HOME: home,
      TMPDIR: folder,
      SHELL: "/bin/sh",
      SLIPWAY_AGENT_TOKEN: agent.token,
      SLIPWAY_AGENT_URL: product.url,
    },
    stdio: ["ignore", "ignore", "ignore"],
  });
  stack.defer(async () => {
    daemon.kill("SIGTERM");
    await daemon.exited;
  });
  const path = `/api/v2/workspaceagents/${agent.agentId}`;
  const headers = { "Service-Session-Token": product.adminToken };
  while ((await fetch(`${product.url}${path}/listening-ports`, { headers })).status !== 200) await Bun.sleep(20);
  const workspace = await fetch(`${product.url}/api/v2/workspaces/${agent.workspaceId}`, { headers });
  const { name } = (await workspace.json()) as { name: string };
  const apps = `/@me/${name}.agent-0/apps`;
  const addLines = async (count: number): Promise<void> => {
    const lines = range(count).map((n) => ({
      created_at: new Date().toISOString(),
      level: "info",
      output: `step ${n}: \u001b[32mok\u001b[0m in ${n % 97} ms`,
    }));
    for (let start = 0; start < count; start += 100) {
      const body = JSON.stringify({ log_source_id: agent.logSourceId, logs: lines.slice(start, start + 100) });
      const request = { method: "PATCH", body, headers: { "content-type": "application/json" } };
      const response = await fetch(`${product.url}/api/v2/workspaceagents/me/logs`, {
        ...request,
        headers: { ...request.headers, "Service-Session-Token": agent.token },
      });
      if (!response.ok) throw new Error(`the lines were refused: ${response.status} ${await response.text()}`);
    }
  };
  const { workspaceId } = agent;
  return {
    product,
    daemon,
    path,
    apps,
    headers,
    folder,
    workspaceId,
    addLines,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
};

/** Measures how many responses per second a request gets that is repeated as soon as it is answered. */
const measureRate = async (seconds: number, send: () => Promise<Response>): Promise<number> => {
  const deadline = performance.now() + seconds * 1000;
  let count = 0;
  await Promise.all(
    range(BATCH_SIZE).map(async () => {
      while (performance.now() < deadline) {
        const response = await send();
        await response.arrayBuffer();
        if (response.status !== 200) throw new Error(`answered ${response.status}`);
        count += 1;
      }
    }),
  );
  return count / seconds;
};

export const tunnel: Row = {
  name: "tunnel",
  title:
    "GET listening-ports of a workspace, 16 concurrent requests; floor: the same requests to the daemon's own socket",
  sides: ["floor", "product"],
  async measure(bench, side) {
    await using reach = await startReachableAgent(bench);
    const [api] = readdirSync(reach.folder).filter((name) => name.startsWith("slipway-agent-"));
    const unix = join(reach.folder, api ?? "", "api");
    const { url } = reach.product;
    const send =
      side === "floor"
        ? () => fetch("http://daemon/api/v0/listening-ports", { unix })
        : () => fetch(`${url}${reach.path}/listening-ports`, { headers: reach.headers });
    await measureRate(WARM_UP_S, send);
    return { requests_per_s: await measureRate(bench.seconds, send) };
  },
  figures: { requests_per_s: "requests/s" },
  verdicts: [
    {
      what: "requests/s, product / floor",
      target: ">= 0.8",
      value: productRatio("requests_per_s"),
      bound: 0.8,
      better: "higher",
      unit: "ratio",
    },
  ],
};

/** Measures the milliseconds from a key to its echo, one key after the other. */
const measureEchoes = async (url: string, headers: Record<string, string>): Promise<{ p50: number; p99: number }> => {
  const socket = new WebSocket(url.replace(/^http/, "ws"), { headers } as never);
  socket.binaryType = "arraybuffer";
  let onOutput = (_: string): void => {};
  socket.onmessage = ({ data }) => onOutput(new TextDecoder().decode(data as ArrayBuffer));
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  // The program may still be setting up its terminal, so the first key comes later.
  const press = (key: string): Promise<string> =>
    new Promise((resolve, reject) => {
      onOutput = resolve;
      socket.onclose = ({ code, reason }) => reject(new Error(`the terminal ended: ${code} ${reason}`));
      socket.send(JSON.stringify({ data: key }));
    });
  await Bun.sleep(500);
  const times: number[] = [];
  for (const i of range(WARM_UP_KEYS + KEYS)) {
    const startedAt = performance.now();
    if ((await press("k")) !== "k") throw new Error("the echo is not the key");
    if (i >= WARM_UP_KEYS) times.push(performance.now() - startedAt);
  }
  socket.onclose = null;
  socket.close();
  times.sort((a, b) => a - b);
  const getPercentile = (share: number): number => times[Math.floor(times.length * share)] ?? 0;
  return { p50: getPercentile(0.5), p99: getPercentile(0.99) };
};

const BARE_RATIO = { target: "<= 2", bound: 2, better: "lower", unit: "ratio" } as const;

export const terminal: Row = {
  name: "terminal",
  title:
    "One key and its echo by `cat` on a raw terminal, after 9,000 others; floor: Bun.Terminal behind a bare WebSocket",
  sides: ["floor", "product"],
  async measure(bench, side) {
    if (side === "product") {
      await using reach = await startReachableAgent(bench);
      const query = new URLSearchParams({ reconnect: crypto.randomUUID(), command: "stty raw -echo; exec cat" });
      return await measureEchoes(`${reach.product.url}${reach.path}/pty?${query}`, reach.headers);
    }
    const port = await findFreePort();
    await using bare = await startServer({
      command: [process.execPath, join(import.meta.dir, "..", "bare-terminal.ts"), String(port)],
      env: {},
      port,
      readyPath: "/",
      core: bench.setup.core,
      logFile: join(bench.setup.dir, `bare-terminal-${port}.log`),
    });
    return await measureEchoes(bare.url, {});
  },
  figures: { p50: "echo p50 ms", p99: "echo p99 ms" },
  verdicts: [
    { what: "echo p50, product / floor", value: productRatio("p50"), ...BARE_RATIO },
    { what: "echo p99, product / floor", value: productRatio("p99"), ...BARE_RATIO },
  ],
};
