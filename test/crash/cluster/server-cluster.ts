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
import { judge, type Outcome, type Row, type Write } from "./cluster-oracle.ts";

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

/** What a fault may look at. */
export type Seen = {
  /** Numbers of nodes. */
  readonly active: number;
  readonly spare: number;
  readonly nodes: ReadonlyMap<number, NodeProcess>;
  /** Writes that were acknowledged so far. */
  acknowledged(): number;
};

/** What a run needs beside the nodes: how to do faults that are not of processes, and where to look in the end. */
export type Torturer<F extends string> = {
  readonly cluster: TestCluster;
  /** Does what is more than a signal to one node; answers what ends it once writes go on. */
  fault?(name: F, seen: Seen): Promise<{ end?(): void | Promise<void> } | undefined>;
  /** The address of the database that counts in the end. */
  truth?(): Promise<string>;
  /** How node number `n` is started, the `time`-th time. */
  start?(n: number, time: number): NonNullable<Parameters<TestCluster["start"]>[1]>;
};

/** Which node a fault ends, and how. `kill-2` and `replace-2` are of node 2, whatever it does. */
const endedBy = (
  fault: string,
  active: number,
  spare: number,
): { readonly node: number; readonly by: "SIGKILL" | "SIGTERM" } | undefined => {
  const [, how, n] = /^(kill|replace)-(\d)$/.exec(fault) ?? [];
  if (how !== undefined) return { node: Number(n), by: how === "kill" ? "SIGKILL" : "SIGTERM" };
  if (fault === "kill") return { node: active, by: "SIGKILL" };
  if (fault === "hand-over") return { node: active, by: "SIGTERM" };
  return fault === "kill-spare" ? { node: spare, by: "SIGKILL" } : undefined;
};

/** Milliseconds for which `stop` lets a node stand still. */
const STOP_MS: Readonly<Record<string, number>> = {
  stop: 2 * LEASE_MS,
  "stop-2": 2000,
  "stop-6": 6000,
  "stop-20": 20_000,
};

/** From now on a table of the test's own says which connection has written each row, in the order of writing. */
const noteWriters = async (url: string): Promise<void> => {
  await using sql = new SQL(url, { max: 1 });
  await sql.unsafe(`
    create table written (n bigserial primary key, name text not null, writer text not null);
    create function note_writer() returns trigger language plpgsql as $$ begin
      insert into written (name, writer) select new.token_name, pid || ' ' || backend_start
        from pg_stat_get_activity(pg_backend_pid());
      return new;
    end $$;
    create trigger note_writer after insert on api_keys for each row execute function note_writer();`);
};

/**
 * What is there, in the order of writing. A connection is one node's, and once another has written it never writes again: the number of
 * connections before it stands for the epoch.
 */
const rowsByWriter = async (url: string): Promise<Row[]> => {
  await using sql = new SQL(url, { max: 1 });
  const found = (await sql.unsafe(
    `select k.token_name as name, w.writer from api_keys k left join written w on w.name = k.token_name
     where k.token_name like 'w-%' order by w.n`,
  )) as { name: string; writer: string | null }[];
  const writers = [...new Set(found.map(({ writer }) => writer))];
  return found.map(({ name, writer }) => ({ name, epoch: writers.indexOf(writer) }));
};

/** Each fault once, in this order, under load. */
export const tortureCluster = async (faults: readonly Fault[], seed: number): Promise<TortureResult> => {
  await using cluster = await startCluster();
  // Awaited here: the nodes live until it is over.
  return await torture({ cluster }, faults, seed);
};

export const torture = async <F extends string>(
  { cluster, fault: more, truth = async () => cluster.database.url, start = () => ({}) }: Torturer<F>,
  faults: readonly (F | Fault)[],
  seed: number,
): Promise<TortureResult> => {
  const random = randomFrom(seed);
  const nodes = new Map<number, Awaited<ReturnType<typeof cluster.start>>>();
  const starts = new Map<number, number>();
  const begin = async (n: number): Promise<void> => {
    const time = starts.get(n) ?? 0;
    starts.set(n, time + 1);
    nodes.set(n, await cluster.start(n, start(n, time)));
  };
  for (const n of NODES) await begin(n);
  const first = nodes.get(1);
  if (!first) throw new Error("no node");
  const { token } = await new Client(first.url).signIn(ADMIN.email, ADMIN.password);
  await noteWriters(await truth());
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
  const goesOn = async (after: string): Promise<number> => {
    const [seen, from] = [acknowledged, performance.now()];
    await until(() => acknowledged >= seen + 10, { what: `writes to go on after ${after}`, patience: 60_000 }).catch(
      (error) => {
        const said = [...nodes.values()].map((node) => `${node.id}:\n${node.said().slice(-3000)}`);
        throw new Error(`${(error as Error).message}; the nodes said\n${said.join("\n")}`);
      },
    );
    return acknowledged_at - from;
  };
  await goesOn("the start");
  let longest_ms = 0;
  for (const fault of faults) {
    const active = await until(() => cluster.active().catch(() => undefined), { what: "an active node" });
    const number = [...nodes].find(([, { id }]) => id === active.id)?.[0] ?? 1;
    const spare = NODES.find((n) => n !== number) ?? 2;
    const ended = endedBy(fault, number, spare);
    if (ended) nodes.get(ended.node)?.signal(ended.by);
    if (fault === "cut") await cluster.database.cutConnections();
    const stands = STOP_MS[fault];
    if (stands !== undefined) {
      active.signal("SIGSTOP");
      await Bun.sleep(stands);
      active.signal("SIGCONT");
    }
    const other = await more?.(fault as F, { active: number, spare, nodes, acknowledged: () => acknowledged });
    longest_ms = Math.max(longest_ms, await goesOn(fault));
    await other?.end?.();
    if (ended) await nodes.get(ended.node)?.exited;
    // A node that another has followed ends by itself, as soon as it hears of that.
    else
      await until(async () => (await isSettled(active)) === true, { what: "the node to serve, to stand by or to end" });
    for (const [n, node] of nodes) {
      if (await hasEnded(node)) await begin(n);
    }
  }
  going = false;
  await writing;
  await until(() => cluster.active().catch(() => undefined), { what: "an active node" });
  // From the database itself: lists over HTTP end after a thousand.
  const rows = await rowsByWriter(await truth());
  const of = (outcome: Outcome): number => writes.filter((one) => one.outcome === outcome).length;
  return { acknowledged, unknown: of("unknown"), refused: of("refused"), longest_ms, wrong: judge(writes, rows) };
};

type Run = (faults: readonly string[], seed: number) => Promise<TortureResult>;

/** Rounds of the faults, each in an order of its own where `isShuffled`; what came of them in one line. */
export const tortureRounds = async (
  { rounds, seed, log }: CheckOptions,
  { faults, isShuffled = true, run }: { faults: readonly string[]; isShuffled?: boolean; run: Run },
): Promise<string> => {
  let [acknowledged, unknown, refused, longest_ms] = [0, 0, 0, 0];
  for (let round = 0; round < rounds; round++) {
    const random = randomFrom(seed + round);
    const order = faults.map((fault) => [isShuffled ? random() : 0, fault] as const).sort(([a], [b]) => a - b);
    const result = await run(
      order.map(([, fault]) => fault),
      seed + round,
    );
    if (result.wrong.length > 0) throw new Error(`seed ${seed + round}: ${result.wrong.slice(0, 5).join("; ")}`);
    acknowledged += result.acknowledged;
    unknown += result.unknown;
    refused += result.refused;
    longest_ms = Math.max(longest_ms, result.longest_ms);
    log(`round ${round}: ${result.acknowledged} acknowledged, longest pause ${Math.round(result.longest_ms)} ms`);
  }
  return `${acknowledged} writes acknowledged, none lost; ${refused} refused, none there; ${unknown} unknown, none twice; no node has written after the next; longest pause ${(longest_ms / 1000).toFixed(1)} s with a lease of ${LEASE_MS / 1000} s`;
};

const serverCluster = async (options: CheckOptions): Promise<string> => {
  const run: Run = (faults, seed) => tortureCluster(faults as Fault[], seed);
  return `${options.rounds * FAULTS.length} faults on three nodes, ${await tortureRounds(options, { faults: FAULTS, run })}`;
};

/** Each of three nodes in turn, whatever it does at that moment. */
const eachKilled = async (options: CheckOptions): Promise<string> => {
  const run: Run = async (faults, seed) => {
    await using cluster = await startCluster();
    return await torture<string>({ cluster }, faults, seed);
  };
  const said = await tortureRounds(options, { faults: ["kill-1", "kill-2", "kill-3"], run });
  return `each of three nodes killed ${options.rounds} times, ${said}`;
};

export const checks: readonly Check[] = needs.postgres.found
  ? [
      { name: "cluster: killed, stopped and cut off", run: serverCluster },
      { name: "cluster: each node killed", run: eachKilled },
    ]
  : [];
