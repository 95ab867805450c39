// Nodes of a cluster as separate processes, which tests kill, stop and restart.
import { join } from "node:path";
import type { NetworkLocation } from "./cluster/networks.ts";
import { findFreePort } from "./net/free-port.ts";
import { createDatabase, type TestDatabase } from "./postgres.ts";
import { toProgramCommand } from "./program.ts";
import { ADMIN, tempDirectory } from "./server.ts";
import { until } from "./until.ts";

export const LEASE_MS = 3000;
const KEY = "5".repeat(64);
/** Values of `cluster_reads` and `cluster_active` for all nodes. Omitted values are the defaults. */
const readNodeSettings = (): Record<string, string> => {
  const { SLIPWAY_TEST_CLUSTER_READS: reads, SLIPWAY_TEST_CLUSTER_ACTIVE: active } = process.env;
  return { ...(reads ? { SLIPWAY_CLUSTER_READS: reads } : {}), ...(active ? { SLIPWAY_CLUSTER_ACTIVE: active } : {}) };
};
/** Returns true if all nodes are active, each with its own shards. */
export const hasOnlyActiveNodes = (): boolean => process.env.SLIPWAY_TEST_CLUSTER_ACTIVE === "every";

export type NodeProcess = {
  readonly id: string;
  readonly url: URL;
  readonly pid: number;
  /** Returns everything that the node has printed so far. */
  output(): string;
  signal(name: "SIGKILL" | "SIGSTOP" | "SIGCONT" | "SIGTERM"): void;
  readonly exited: Promise<number>;
};

export type TestCluster = AsyncDisposable & {
  readonly database: TestDatabase;
  /** Starts or restarts node `n`. `waits`: the message to wait for. */
  start(
    n: number,
    options?: { env?: Record<string, string>; waits?: RegExp; program?: readonly string[] | undefined },
  ): Promise<NodeProcess>;
  /** Returns the node that reports to be active. */
  active(): Promise<NodeProcess>;
};

const READY = / is listening on | is on standby on port /;

type ClusterPlaces = {
  /** A database to use instead of a new one on the server of `.ci/postgres`. */
  readonly database?: TestDatabase;
  /** Returns where node `n` runs. */
  place?(n: number): NetworkLocation;
  /** The addresses of all nodes, if each node has a separate one. */
  readonly hosts?: readonly string[];
};

export const startCluster = async (places: ClusterPlaces = {}): Promise<TestCluster> => {
  const database = places.database ?? (await createDatabase());
  const temp = tempDirectory();
  const nodes = new Map<number, NodeProcess>();
  const ports = new Map<number, number>();
  const start: TestCluster["start"] = async (n, { env = {}, waits = READY, program = toProgramCommand() } = {}) => {
    const port = ports.get(n) ?? findFreePort();
    ports.set(n, port);
    const { address, through } = places.place?.(n) ?? { address: "127.0.0.1", through: [] };
    const id = `${address}:${port}`;
    const child = Bun.spawn([...through, ...program, "serve"], {
      cwd: temp.path,
      env: {
        PATH: process.env.PATH ?? "",
        HOME: temp.path,
        TMPDIR: process.env.TMPDIR ?? "/tmp",
        SLIPWAY_DATABASE_URL: database.url,
        SLIPWAY_ENCRYPTION_KEY: KEY,
        SLIPWAY_ADDRESS: id,
        SLIPWAY_NODE_ADDRESS: id,
        SLIPWAY_DATA_DIR: join(temp.path, `node-${n}`),
        SLIPWAY_CLUSTER_LEASE: `${LEASE_MS}ms`,
        SLIPWAY_DOCKER_HOST: "unix:///nowhere/docker.sock",
        SLIPWAY_ADMIN_EMAIL: ADMIN.email,
        SLIPWAY_ADMIN_USERNAME: ADMIN.username,
        SLIPWAY_ADMIN_PASSWORD: ADMIN.password,
        SLIPWAY_CHAT_TITLES: "false",
        // If nodes have their own addresses, their clients are not local programs and would be rate limited.
        SLIPWAY_API_RATE_LIMIT: "0",
        ...readNodeSettings(),
        ...(places.hosts ? { SLIPWAY_ALLOWED_HOSTS: places.hosts.join(",") } : {}),
        ...env,
      },
      stdout: "pipe",
      stderr: "pipe",
    });
    let log = "";
    const readOutput = async (output: ReadableStream<Uint8Array>): Promise<void> => {
      for await (const text of output.pipeThrough(new TextDecoderStream() as never)) log += text;
    };
    const reading = Promise.all([readOutput(child.stdout), readOutput(child.stderr)]);
    let wasSignaled = false;
    const node: NodeProcess = {
      id,
      url: new URL(`${env.SLIPWAY_TLS_CERT_FILE ? "https" : "http"}://${id}/`),
      pid: child.pid,
      exited: child.exited,
      output: () => log,
      signal: (name) => {
        wasSignaled = true;
        child.kill(name);
      },
    };
    nodes.set(n, node);
    let hasEnded = false;
    // The end of the output arrives after the exit.
    void Promise.all([child.exited, reading]).then(() => {
      hasEnded = true;
      // Explains connections that the exit has reset: on a busy machine, a node may lose its lease.
      if (waits.test(log) && !wasSignaled)
        process.stderr.write(`node ${n} (${id}) exited unexpectedly with ${child.exitCode}: ${log.slice(-1_000)}\n`);
    });
    await until(() => waits.test(log) || hasEnded, { what: `node ${n} to say ${waits}` });
    if (!waits.test(log)) throw new Error(`node ${n} ended (${child.signalCode ?? child.exitCode}): ${log}`);
    return node;
  };
  const active = async (): Promise<NodeProcess> => {
    for (const node of nodes.values()) {
      const signal = AbortSignal.timeout(2000);
      const answer = await fetch(new URL("/readyz", node.url), { signal }).catch(() => undefined);
      if (!answer?.ok) continue;
      const { node: role, message } = (await answer.json()) as { node?: string; message: string };
      // An earlier build reports this only in the message.
      if (role === "active" || message === "Ready.") return node;
    }
    throw new Error("no node is active");
  };
  return {
    database,
    start,
    active,
    async [Symbol.asyncDispose]() {
      for (const node of nodes.values()) {
        node.signal("SIGKILL");
        await node.exited;
      }
      await database.remove();
      temp[Symbol.dispose]();
    },
  };
};
