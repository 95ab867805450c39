// The ssh row: duration of `slipway ssh NAME -- true`, the first time and later, with our client and with OpenSSH, and the cost of an idle
// session for the server and the daemon.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client as Ssh } from "ssh2";
import { systemClock } from "#base/clock.ts";
import { join as joinNetwork } from "#src/cli/client/network/join.ts";
import { Client } from "#src/client.ts";
import { AGENT_PORT } from "#src/wire/agent-dialer.ts";
import { toNodeStream } from "#src/wire/node-stream.ts";
import { processorMs, residentMiB } from "../machine.ts";
import { productFigure, type Row, range } from "../row.ts";
import { startReachableAgent } from "./rows-tunnel.ts";

const CALLS = 9;
const SESSIONS = 100;
/** Sessions that stay open during the measurement, so that one-time allocations do not count as the cost of a session. */
const BASE_SESSIONS = 100;
const BATCH_SIZE = 10;
const UPLOADS = 3;
const UPLOAD_MB = 20;
/** Programs release their startup memory late. */
const SETTLE_MS = 10_000;

type ReachableAgent = Awaited<ReturnType<typeof startReachableAgent>>;

/** Milliseconds until a program has ended, and its CPU time. */
type RunCost = { readonly ms: number; readonly processor_ms: number };

/** Returns a function that runs programs like a signed-in user. */
const openShell = ({
  product,
  home,
  command,
}: {
  product: ReachableAgent["product"];
  home: string;
  command: readonly string[];
}) => {
  const bin = join(home, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "slipway"), `#!/bin/sh\nexec ${command.join(" ")} "$@"\n`, { mode: 0o755 });
  const env = {
    HOME: home,
    PATH: `${bin}:${process.env.PATH}`,
    SLIPWAY_URL: product.url,
    SLIPWAY_TOKEN: product.adminToken,
  };
  return async (...argv: string[]): Promise<RunCost> => {
    const startedAt = performance.now();
    const child = Bun.spawn(argv, { env, stdio: ["ignore", "ignore", "pipe"] });
    if ((await child.exited) !== 0) throw new Error(`${argv.join(" ")}: ${await child.stderr.text()}`);
    const ms = performance.now() - startedAt;
    return { ms, processor_ms: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1_000 };
  };
};

const median = (times: number[]): number => times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;

/** Starts an idle session of a new client that runs `cat`. */
const startIdleSession = async (client: Client, agent_id: string): Promise<AsyncDisposable> => {
  const { peer, ...joinedPeer } = joinNetwork(client, agent_id, { clock: systemClock });
  const ssh = new Ssh();
  const sock = toNodeStream(await peer.dial(agent_id, AGENT_PORT.ssh)) as never;
  await new Promise<void>((resolve, reject) => {
    ssh.once("ready", resolve).once("error", reject);
    ssh.connect({ sock, username: "slipway", authHandler: ["none"], hostVerifier: () => true } as never);
  });
  await new Promise<void>((resolve, reject) => ssh.exec("cat", (error) => (error ? reject(error) : resolve())));
  return {
    async [Symbol.asyncDispose]() {
      ssh.end();
      await joinedPeer[Symbol.asyncDispose]();
    },
  };
};

const startIdleSessions = async (client: Client, agent_id: string, count: number): Promise<AsyncDisposable> => {
  const stack = new AsyncDisposableStack();
  for (let remaining = count; remaining > 0; remaining -= BATCH_SIZE) {
    const created = await Promise.all(
      range(Math.min(BATCH_SIZE, remaining)).map(() => startIdleSession(client, agent_id)),
    );
    for (const session of created) stack.use(session);
  }
  return stack;
};

/** Measures the kilobytes that each idle session adds to the server and to the daemon. */
const measureIdleKilobytes = async ({
  product,
  daemon,
  path,
}: ReachableAgent): Promise<Record<"server" | "daemon", number>> => {
  const client = new Client(product.url, product.adminToken);
  const agent_id = path.split("/").at(-1) as string;
  const readSizes = (): number[] => [product.pid, daemon.pid].map((pid) => residentMiB(pid) * 1024);
  await using _base = await startIdleSessions(client, agent_id, BASE_SESSIONS);
  await Bun.sleep(SETTLE_MS);
  const before = readSizes();
  await using _sessions = await startIdleSessions(client, agent_id, SESSIONS);
  await Bun.sleep(SETTLE_MS);
  const [server = 0, daemonKb = 0] = readSizes().map((size, i) => (size - (before[i] as number)) / SESSIONS);
  return { server, daemon: daemonKb };
};

/** Measures the CPU milliseconds of server and daemon per uploaded megabyte: with OpenSSH, with `workspaces shell`, and to an app. */
const measureUploadCosts = async (
  { product, daemon, apps, headers, folder }: ReachableAgent,
  run: ReturnType<typeof openShell>,
  name: string,
): Promise<Record<"ssh" | "shell" | "app", number>> => {
  const file = join(folder, "upload");
  writeFileSync(file, Buffer.alloc(UPLOAD_MB << 20, "a line of an upload\n"));
  await using app = await startReader();
  const pids = [product.pid, daemon.pid];
  const readTotalMs = (): number => pids.reduce((sum, pid) => sum + processorMs(pid), 0);
  const measureCost = async (work: () => Promise<unknown>): Promise<number> => {
    const costs: number[] = [];
    for (const _ of range(UPLOADS)) {
      const before = readTotalMs();
      await work();
      costs.push((readTotalMs() - before) / UPLOAD_MB);
    }
    return median(costs);
  };
  const config = join(folder, "person", ".ssh", "config");
  const runWithInput = (command: string) => run("sh", "-c", `${command} < ${file}`);
  return {
    ssh: await measureCost(() => runWithInput(`ssh -F ${config} slipway.${name} 'cat > /dev/null'`)),
    shell: await measureCost(() => runWithInput(`slipway workspaces shell ${name} -- sh -c 'cat > /dev/null'`)),
    app: await measureCost(() =>
      fetch(`${product.url}${apps}/${app.port}/`, { method: "PUT", headers, body: Bun.file(file) }),
    ),
  };
};

/** Starts an app that discards its input. */
const startReader = async () => {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    maxRequestBodySize: 2 * UPLOAD_MB * 1024 * 1024,
    async fetch(request) {
      for await (const _ of request.body ?? []);
      return new Response();
    },
  });
  return { port: server.port, [Symbol.asyncDispose]: () => server.stop(true) };
};

const atMost = (what: string, figure: string, bound: number, unit: "ms" | "KB") => ({
  what,
  target: `<= ${bound} ${unit}`,
  value: productFigure(figure),
  bound,
  unit,
  better: "lower" as const,
});

export const networkSsh: Row = {
  name: "network-ssh",
  title: `\`slipway ssh NAME -- true\` the first time and ${CALLS} times later, the same by OpenSSH, and ${SESSIONS} idle sessions; clients are not pinned`,
  sides: ["product"],
  async measure(bench) {
    await using agent = await startReachableAgent(bench);
    const { product, headers, workspaceId, folder } = agent;
    const response = await fetch(`${product.url}/api/v2/workspaces/${workspaceId}`, { headers });
    const { name } = (await response.json()) as { name: string };
    const run = openShell({ product, home: join(folder, "person"), command: bench.setup.productCommand ?? [] });
    const slipwayCommand = ["slipway", "ssh", name, "--", "true"];
    const first = (await run(...slipwayCommand)).ms;
    const warm: RunCost[] = [];
    for (const _ of range(CALLS)) warm.push(await run(...slipwayCommand));
    const version: RunCost[] = [];
    for (const _ of range(CALLS)) version.push(await run("slipway", "--version"));
    await run("slipway", "config-ssh");
    const openssh: number[] = [];
    const config = join(folder, "person", ".ssh", "config");
    for (const _ of range(CALLS)) openssh.push((await run("ssh", "-F", config, `slipway.${name}`, "true")).ms);
    const uploads = await measureUploadCosts(agent, run, name);
    const kilobytes = await measureIdleKilobytes(agent);
    return {
      first,
      warm: median(warm.map(({ ms }) => ms)),
      least: Math.min(...warm.map(({ ms }) => ms)),
      processor: median(warm.map(({ processor_ms }) => processor_ms)),
      version: median(version.map(({ ms }) => ms)),
      openssh: median(openssh),
      upload_ssh: uploads.ssh,
      upload_shell: uploads.shell,
      upload_app: uploads.app,
      idle_server: kilobytes.server,
      idle_daemon: kilobytes.daemon,
    };
  },
  figures: {
    first: "slipway ssh NAME -- true, first, ms",
    warm: "slipway ssh NAME -- true, later, ms",
    least: "the same, shortest, ms",
    processor: "CPU time of the client for that command, ms",
    version: "slipway --version, ms",
    openssh: "ssh slipway.NAME true by OpenSSH, later, ms",
    upload_ssh: "processor ms of server and daemon per MB up, OpenSSH",
    upload_shell: "the same by slipway workspaces shell in a pipe",
    upload_app: "the same to an app through the proxy",
    idle_server: "server's memory KB for each idle session",
    idle_daemon: "daemon's memory KB for each idle session",
  },
  verdicts: [
    atMost("`ssh NAME -- true`, first", "first", 400, "ms"),
    atMost("`ssh NAME -- true`, later", "warm", 150, "ms"),
    {
      what: "CPU of an upload by ssh, divided by that of an upload to an app",
      target: "<= 4",
      value: ({ product }) =>
        product ? (product.upload_ssh ?? Number.NaN) / (product.upload_app ?? Number.NaN) : undefined,
      bound: 4,
      unit: "ratio",
      better: "lower",
    },
    atMost("server's memory for an idle ssh session", "idle_server", 60, "KB"),
    atMost("daemon's memory for an idle ssh session", "idle_daemon", 300, "KB"),
  ],
};
