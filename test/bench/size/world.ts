// A node on a separate PostgreSQL, with agents, chats and a list, and time windows in which the work of the node, of the database and of
// the connection between them is counted.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { CHANNEL } from "#db/pg/notices/notice.ts";
import { Client } from "#src/client.ts";
import { type NodeProcess, startCluster } from "#test/support/cluster.ts";
import { readLines } from "#test/support/net/lines.ts";
import { ADMIN } from "#test/support/server.ts";
import { findFreePort, processorMs, residentMiB } from "../machine.ts";
import { startModel } from "../model.ts";
import { productCommand, type SeededAgent, seedAgents } from "../product.ts";
import { startPostgres } from "../rows/rows-cluster.ts";
import type { Crew, Order, OrderResult } from "./agents.ts";
import { startCountingProxy } from "./counting-proxy.ts";
import type { Window } from "./model.ts";

/** Few agents per workspace, as in practice. */
const AGENTS_PER_WORKSPACE = 4;
const CHATS = 50;
const METADATA = ["cpu", "disk", "load"].map((key) => ({ key, script: "true", interval: 10 }));

export type MeasuredWindow = Window & { readonly result: OrderResult };
export type SizeWorld = AsyncDisposable & {
  /** Sends an order, and returns what was measured until the order was done. */
  measure(order: Order): Promise<MeasuredWindow>;
  /** Returns the memory of all nodes in MiB. */
  memory(): number;
  /**
   * Starts a spare that only forwards these orders. Returns its CPU time for each, and its memory without and with the agents that it
   * serves.
   */
  behindSpare(orders: readonly Order[]): Promise<{
    readonly results: readonly { readonly count: number; readonly spare_ms: number }[];
    readonly empty_mb: number;
    readonly full_mb: number;
  }>;
};

const readDatabaseCpuMs = (folder: string): number => {
  const postmaster = readFileSync(join(folder, "data/postmaster.pid"), "utf8").split("\n")[0];
  const pids = readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return (
        pid === postmaster || readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[1] === postmaster
      );
    } catch {
      return false;
    }
  });
  return pids.reduce((sum, pid) => sum + processorMs(Number(pid)), 0);
};

const loadMetrics = async (port: number): Promise<(name: string) => number> => {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return (name) => Number(new RegExp(`^${name}(?:{[^}]*})? (.*)$`, "m").exec(text)?.[1] ?? Number.NaN);
};

const countDone = ({ done }: OrderResult): number => Object.values(done).reduce((sum, count) => sum + count, 0);

/** Starts agents.ts, which handles orders one after the other. */
const startAgents = (urls: readonly URL[], file: string) => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "agents.ts"), urls.join(","), file], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const output = readLines(child.stdout);
  return {
    async handleOrder(order: Order): Promise<OrderResult> {
      child.stdin.write(`${JSON.stringify(order)}\n`);
      child.stdin.flush();
      const { value } = await output.next();
      const result = JSON.parse(value ?? "{}") as OrderResult;
      if (result.failed > 0) throw new Error(`${result.failed} failed: ${result.message}`);
      return result;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
};

const createPeople = (admin: Client, organization_id: string, count: number): Promise<Client[]> =>
  Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const [username, password] = [`person-${n}`, `of person ${n}, ${crypto.randomUUID()}`];
      const email = `${username}@example.com`;
      const account = { email, username, password, login_type: "password", organization_ids: [organization_id] };
      await admin.post<unknown>("/api/v2/users", account);
      return await admin.withToken(undefined).signIn(email, password);
    }),
  );

/**
 * `people`: the number of users in addition to the first one, among whom agents and chats are distributed. `nodes`: the number of nodes,
 * all of which are active if there are several.
 */
type Size = { readonly people?: number; readonly nodes?: number };

export const openWorld = async (count: number, { people = 0, nodes = 1 }: Size = {}): Promise<SizeWorld> => {
  await using stack = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), "slipway-size-"));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  const postgres = stack.use(await startPostgres(tmpdir()));
  const proxy = startCountingProxy(new URL(postgres.env.SLIPWAY_DATABASE_URL));
  stack.defer(() => proxy.stop());
  const doNothing = async (): Promise<void> => {};
  const database = { name: "postgres", url: proxy.url.href, cutConnections: doNothing, remove: doNothing };
  const cluster = stack.use(await startCluster({ database }));
  const env = {
    SLIPWAY_CLUSTER_READS: "every",
    SLIPWAY_AGENT_LOG_LIMIT: String(2 ** 40),
    SLIPWAY_CHAT_SLOTS: "1000",
    ...(nodes > 1 ? { SLIPWAY_CLUSTER_ACTIVE: "every" } : {}),
  };
  const program = productCommand();
  const startedNodes: { readonly node: NodeProcess; readonly metrics: number }[] = [];
  for (let n = 1; n <= nodes; n++) {
    const metrics = await findFreePort();
    const nodeEnv = { ...env, SLIPWAY_METRICS_ADDRESS: `127.0.0.1:${metrics}` };
    startedNodes.push({ node: await cluster.start(n, { env: nodeEnv, program }), metrics });
  }
  const [{ node }] = startedNodes as [(typeof startedNodes)[number]];
  const admin = await new Client(node.url).signIn(ADMIN.email, ADMIN.password);
  const model = stack.use(await startModel(dir));
  await admin.post<unknown>("/api/v2/chats/providers", { provider: "openai-compat", base_url: `${model.url}/v1` });
  await admin.post<unknown>("/api/v2/chats/model-configs", { provider: "openai-compat", model: "source" });
  const [organization] = await admin.get<{ id: string }[]>("/api/v2/organizations");
  const organization_id = organization?.id ?? "";
  const users = people === 0 ? [admin] : await createPeople(admin, organization_id, people);
  const product = { url: node.url.origin, adminToken: admin.token ?? "" };
  const agents: SeededAgent[] = [];
  for (const user of users)
    agents.push(
      ...(await seedAgents(product, count / users.length, {
        perWorkspace: AGENTS_PER_WORKSPACE,
        agentFields: { metadata: METADATA },
        owner: user.token,
      })),
    );
  const content = [{ type: "text", text: "now" }];
  const chats = await Promise.all(
    Array.from({ length: CHATS }, async (_, i) => {
      const user = users[i % users.length] as Client;
      const { id } = await user.post<{ id: string }>("/api/v2/chats", { organization_id, content });
      return { id, token: user.token ?? "" };
    }),
  );
  const crew: Crew = { admin: product.adminToken, agents, chats };
  const file = join(dir, "crew.json");
  await Bun.write(file, JSON.stringify(crew));
  const agentProcess = stack.use(
    startAgents(
      startedNodes.map(({ node: { url } }) => url),
      file,
    ),
  );
  let notices = 0;
  const listener = new SQL(postgres.env.SLIPWAY_DATABASE_URL, { max: 1 });
  stack.defer(() => listener.close());
  await listener.listen(CHANNEL, () => void notices++);

  const sampleNodes = async () => {
    const figures = await Promise.all(startedNodes.map(({ metrics }) => loadMetrics(metrics)));
    const sum = (name: string): number => figures.reduce((total, figure) => total + figure(name), 0);
    return {
      at: performance.now(),
      groups: sum("slipway_commit_groups_total"),
      batches: sum("slipway_commit_batches_total"),
      writing_ms: sum("slipway_commit_seconds_sum") * 1000,
      node_ms: startedNodes.reduce((total, { node: { pid } }) => total + processorMs(pid), 0),
      database_ms: readDatabaseCpuMs(postgres.folder),
      notices,
      ...proxy.counts,
    };
  };
  const startSpare = async (): Promise<NodeProcess> =>
    await cluster.start(nodes + 1, { env: { ...env, SLIPWAY_CLUSTER_READS: "active" }, program });
  const resources = stack.move();
  return {
    async measure(order) {
      const before = await sampleNodes();
      const result = await agentProcess.handleOrder(order);
      const after = await sampleNodes();
      const { at: _, ...counts } = before;
      const increase = Object.fromEntries(
        Object.entries(counts).map(([name, value]) => [
          name,
          ((after as Record<string, number>)[name] as number) - value,
        ]),
      ) as Omit<Window, "seconds" | "done">;
      return { ...increase, seconds: (after.at - before.at) / 1000, done: countDone(result), result };
    },
    memory: () => startedNodes.reduce((sum, { node: { pid } }) => sum + residentMiB(pid), 0),
    async behindSpare(orders) {
      const spare = await startSpare();
      await using spareAgents = startAgents([spare.url], file);
      const empty_mb = residentMiB(spare.pid);
      const results = [];
      for (const order of orders) {
        const cpuBefore = processorMs(spare.pid);
        const result = await spareAgents.handleOrder(order);
        results.push({ count: countDone(result), spare_ms: processorMs(spare.pid) - cpuBefore });
      }
      return { results, empty_mb, full_mb: residentMiB(spare.pid) };
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
};
