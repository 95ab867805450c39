// Nodes of a cluster under load that are killed, stopped and cut off. Clients write through all nodes and note what they were told;
// cluster-oracle.ts judges.
import { SQL } from "bun";
import { Client } from "#src/client.ts";
import { LEASE_MS, type NodeProcess, startCluster, type TestCluster } from "#test/support/cluster.ts";
import { needs } from "#test/support/needs.ts";
import { randomFrom } from "#test/support/random.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import { judge, type Outcome, type Write } from "./cluster-oracle.ts";

export const FAULTS = ["kill", "stop", "cut", "hand-over", "kill-spare"] as const;
export type Fault = (typeof FAULTS)[number];
export type TortureResult = {
  readonly acknowledged: number;
  readonly unknown: number;
  readonly refused: number;
  /** From the fault to the next acknowledged write, the longest. */
  readonly longest_ms: number;
  readonly wrong: readonly string[];
};

const CLIENTS = 4;
const NODES = [1, 2, 3] as const;

const outcomeOf = async (write: Promise<Response>): Promise<Outcome> => {
  try {
    const { status } = await write;
    if (status < 300) return "done";
    // 500 says that it may have been saved; 503 and what the client did wrong, that it was not.
    return status === 500 || status === 502 || status === 504 ? "unknown" : "refused";
  } catch {
    return "unknown";
  }
};

const hasEnded = (node: NodeProcess): Promise<boolean> =>
  Promise.race([node.exited.then(() => true), Bun.sleep(20).then(() => false)]);

const isSettled = async (node: NodeProcess): Promise<boolean> => {
  if (await hasEnded(node)) return true;
  const answer = await fetch(new URL("/readyz", node.url), { signal: AbortSignal.timeout(2000) }).catch(
    () => undefined,
  );
  await answer?.body?.cancel();
  return answer?.ok === true;
};

/** What a run needs beside the nodes: how to do faults that are not of processes, and where to look in the end. */
export type Torturer<F extends string> = {
  readonly cluster: TestCluster;
  /** Does what is more than a signal; answers what ends it, and whether the active node may have ended by it. */
  fault?(name: F, active: number, spare: number): Promise<{ end?(): void | Promise<void> } | undefined>;
  /** The address of the database that counts in the end. */
  truth?(): Promise<string>;
};

/** Milliseconds for which `stop` lets a node stand still. */
const STOP_MS: Readonly<Record<string, number>> = {
  stop: 2 * LEASE_MS,
  "stop-2": 2000,
  "stop-6": 6000,
  "stop-20": 20_000,
};

/** Each fault once, in this order, under load. */
export const tortureCluster = async (faults: readonly Fault[], seed: number): Promise<TortureResult> => {
  await using cluster = await startCluster();
  // Awaited here: the nodes live until it is over.
  return await torture({ cluster }, faults, seed);
};

export const torture = async <F extends string>(
  { cluster, fault: more, truth = async () => cluster.database.url }: Torturer<F>,
  faults: readonly (F | Fault)[],
  seed: number,
): Promise<TortureResult> => {
  const random = randomFrom(seed);
  const nodes = new Map<number, Awaited<ReturnType<typeof cluster.start>>>();
  for (const n of NODES) nodes.set(n, await cluster.start(n));
  const first = nodes.get(1);
  if (!first) throw new Error("no node");
  const { token } = await new Client(first.url).signIn(ADMIN.email, ADMIN.password);
  const writes: Write[] = [];
  let going = true;
  let acknowledged_at = performance.now();
  let acknowledged = 0;
  const write = async (client: number): Promise<void> => {
    for (let i = 0; going; i++) {
      const node = [...nodes.values()][Math.floor(random() * nodes.size)];
      if (!node) continue;
      const name = `w-${client}-${i}`;
      const request = new Client(node.url, token).fetch(
        "POST",
        "/api/v2/users/me/keys/tokens",
        { token_name: name },
        { signal: AbortSignal.timeout(5000) },
      );
      const outcome = await outcomeOf(request);
      writes.push({ name, outcome });
      if (outcome === "done") {
        acknowledged++;
        acknowledged_at = performance.now();
      } else await Bun.sleep(20);
    }
  };
  const writing = Promise.all(Array.from({ length: CLIENTS }, (_, i) => write(i)));
  const goesOn = async (): Promise<number> => {
    const [seen, from] = [acknowledged, performance.now()];
    await until(() => acknowledged >= seen + 10, { what: "writes to go on", patience: 60_000 }).catch((error) => {
      const said = [...nodes.values()].map((node) => `${node.id}:\n${node.said().slice(-3000)}`);
      throw new Error(`${(error as Error).message}; the nodes said\n${said.join("\n")}`);
    });
    return acknowledged_at - from;
  };
  await goesOn();
  let longest_ms = 0;
  for (const fault of faults) {
    const active = await until(() => cluster.active().catch(() => undefined), { what: "an active node" });
    const number = [...nodes].find(([, { id }]) => id === active.id)?.[0] ?? 1;
    const spare = NODES.find((n) => n !== number) ?? 2;
    if (fault === "kill") active.signal("SIGKILL");
    if (fault === "hand-over") active.signal("SIGTERM");
    if (fault === "kill-spare") nodes.get(spare)?.signal("SIGKILL");
    if (fault === "cut") await cluster.database.cutConnections();
    const stands = STOP_MS[fault];
    if (stands !== undefined) {
      active.signal("SIGSTOP");
      await Bun.sleep(stands);
      active.signal("SIGCONT");
    }
    const other = await more?.(fault as F, number, spare);
    longest_ms = Math.max(longest_ms, await goesOn());
    await other?.end?.();
    const ended = fault === "kill-spare" ? spare : fault === "kill" || fault === "hand-over" ? number : undefined;
    if (ended !== undefined) await nodes.get(ended)?.exited;
    // A node that another has followed ends by itself, as soon as it hears of that.
    else
      await until(async () => (await isSettled(active)) === true, { what: "the node to serve, to stand by or to end" });
    for (const [n, node] of nodes) {
      if (await hasEnded(node)) nodes.set(n, await cluster.start(n));
    }
  }
  going = false;
  await writing;
  await until(() => cluster.active().catch(() => undefined), { what: "an active node" });
  // From the database itself: lists over HTTP end after a thousand.
  const sql = new SQL(await truth(), { max: 1 });
  const found = (await sql.unsafe(
    "select token_name from api_keys where token_name like 'w-%' order by created_at, id",
  )) as {
    token_name: string;
  }[];
  await sql.close();
  const rows = found.map(({ token_name }) => ({ name: token_name, epoch: 0 }));
  const of = (outcome: Outcome): number => writes.filter((one) => one.outcome === outcome).length;
  return { acknowledged, unknown: of("unknown"), refused: of("refused"), longest_ms, wrong: judge(writes, rows) };
};

/** Rounds of all faults in an order of their own. Needs the server of `.ci/postgres`. */
const serverCluster = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  let [acknowledged, unknown, refused, longest_ms] = [0, 0, 0, 0];
  for (let round = 0; round < rounds; round++) {
    const random = randomFrom(seed + round);
    const faults = [...FAULTS].map((fault) => [random(), fault] as const).sort(([a], [b]) => a - b);
    const result = await tortureCluster(
      faults.map(([, fault]) => fault),
      seed + round,
    );
    if (result.wrong.length > 0) throw new Error(`seed ${seed + round}: ${result.wrong.slice(0, 5).join("; ")}`);
    acknowledged += result.acknowledged;
    unknown += result.unknown;
    refused += result.refused;
    longest_ms = Math.max(longest_ms, result.longest_ms);
    log(`round ${round}: ${result.acknowledged} acknowledged, longest pause ${Math.round(result.longest_ms)} ms`);
  }
  return `${rounds * FAULTS.length} faults on three nodes, ${acknowledged} writes acknowledged, none lost; ${refused} refused, none there; ${unknown} unknown, none twice; longest pause ${(longest_ms / 1000).toFixed(1)} s with a lease of ${LEASE_MS / 1000} s`;
};

export const checks: readonly Check[] = needs.postgres.found
  ? [{ name: "cluster: killed, stopped and cut off", run: serverCluster }]
  : [];
