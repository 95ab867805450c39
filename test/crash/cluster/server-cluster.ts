// Nodes of a cluster under load that are killed, stopped and disconnected. Clients write through all nodes and record the responses, and
// cluster-oracle.ts checks the result.
import { SQL } from "bun";
import { Client } from "#src/client.ts";
import {
  hasOnlyActiveNodes,
  LEASE_MS,
  type NodeProcess,
  startCluster,
  type TestCluster,
} from "#test/support/cluster.ts";
import { needs } from "#test/support/needs.ts";
import { randomFrom } from "#test/support/random.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import { CLIENT_TIMEOUT_MS, ClusterLoad } from "./cluster-load.ts";
import { checkWrites, type Row } from "./cluster-oracle.ts";
import { type Pause, type TortureResult, type TortureRun, tortureRounds } from "./rounds.ts";
import { loadShardEvents, recordShardWriters } from "./shard-events.ts";
import { ShardsLoad } from "./shards-load.ts";
import { checkShardEvents } from "./shards-oracle.ts";

export const FAULTS = ["kill", "stop", "cut", "hand-over", "kill-spare"] as const;
export type Fault = (typeof FAULTS)[number];

const NODE_NUMBERS = [1, 2, 3] as const;
/** Raises the limit for log lines, so that a whole run fits. */
const ENOUGH_LINES = { SLIPWAY_AGENT_LOG_LIMIT: String(2 ** 30) };
/**
 * Approximate number of faults per minute, so that scheduled starts fall due during faults. A run of one or two faults does not wait for
 * scheduled starts.
 */
const FAULTS_PER_MINUTE = 6;
const toMinutes = (faults: readonly unknown[]): number =>
  faults.length < 3 ? 0 : 1 + Math.floor(faults.length / FAULTS_PER_MINUTE);
/** If every node is active, the maximum wait before the next fault, so that faults also happen while shards move or are inactive. */
const MAX_GAP_MS = 2000;
/**
 * How long no write may be acknowledged after a fault: a node takes over when the lease has ended, and is ready about a second later. The
 * other four seconds allow for a busy machine.
 */
const PAUSE_MS = LEASE_MS + 1000 + 4000;
/** Faults that drop packets: each client detects them by a timeout, in the worst case twice. */
const SILENT = /^(node|spare|client)-(node|client)/;
const getMaxPauseMs = (fault: string): number =>
  SILENT.test(fault) ? Math.max(2 * CLIENT_TIMEOUT_MS + 1000, PAUSE_MS) : PAUSE_MS;

const hasEnded = (node: NodeProcess): Promise<boolean> =>
  Promise.race([node.exited.then(() => true), Bun.sleep(20).then(() => false)]);

const isSettled = async (node: NodeProcess): Promise<boolean> => {
  if (await hasEnded(node)) return true;
  const response = await fetch(new URL("/readyz", node.url), { signal: AbortSignal.timeout(2000) }).catch(
    () => undefined,
  );
  await response?.body?.cancel();
  return response?.ok === true;
};

/** The state that a fault can access. */
export type FaultContext = {
  /** Numbers of nodes. */
  readonly active: number;
  readonly spare: number;
  readonly nodes: ReadonlyMap<number, NodeProcess>;
  /** Writes acknowledged so far. */
  acknowledged(): number;
};

/** What a run may add: faults that are more than a signal, and the database with the final state. */
export type TortureSetup<F extends string> = {
  readonly cluster: TestCluster;
  /** Performs a fault that is more than a signal to one node. Returns what ends the fault once writes continue. */
  fault?(name: F, context: FaultContext): Promise<{ end?(): void | Promise<void> } | undefined>;
  /** Returns the URL of the database with the final state. */
  getFinalUrl?(): Promise<string>;
  /** Returns how node `n` is started; `startIndex` is the number of its earlier starts. */
  start?(n: number, startIndex: number): NonNullable<Parameters<TestCluster["start"]>[1]>;
};

/** Returns which node a fault ends, and how. `kill-2` and `replace-2` affect node 2, whatever its role. */
const findEndedNode = (
  fault: string,
  active: number,
  spare: number,
): { readonly node: number; readonly signal: "SIGKILL" | "SIGTERM" } | undefined => {
  const [, action, n] = /^(kill|replace)-(\d)$/.exec(fault) ?? [];
  if (action !== undefined) return { node: Number(n), signal: action === "kill" ? "SIGKILL" : "SIGTERM" };
  if (fault === "kill") return { node: active, signal: "SIGKILL" };
  if (fault === "hand-over") return { node: active, signal: "SIGTERM" };
  return fault === "kill-spare" ? { node: spare, signal: "SIGKILL" } : undefined;
};

/** Milliseconds for which `stop` pauses a node. */
const STOP_MS: Readonly<Record<string, number>> = {
  stop: 2 * LEASE_MS,
  "stop-2": 2000,
  "stop-6": 6000,
  "stop-20": 20_000,
};

/** Starts to record in a test table which connection has written each row, in order. */
const recordWriters = async (url: string): Promise<void> => {
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
 * Returns the rows in the order of writing. A connection belongs to one node, and does not write again once another node has written. So
 * the number of earlier connections serves as the epoch.
 */
const loadRowsByWriter = async (url: string): Promise<Row[]> => {
  await using sql = new SQL(url, { max: 1 });
  const rows = (await sql.unsafe(
    `select k.token_name as name, w.writer from api_keys k left join written w on w.name = k.token_name
     where k.token_name like 'w-%' order by w.n`,
  )) as { name: string; writer: string | null }[];
  const writers = [...new Set(rows.map(({ writer }) => writer))];
  return rows.map(({ name, writer }) => ({ name, epoch: writers.indexOf(writer) }));
};

/** Runs each fault once, in this order, under load. */
export const tortureCluster = async (faults: readonly Fault[], seed: number): Promise<TortureResult> => {
  await using cluster = await startCluster();
  // Awaited here, because the nodes must live until the run is over.
  return await torture({ cluster }, faults, seed);
};

export const torture = async <F extends string>(
  { cluster, fault: extraFault, getFinalUrl = async () => cluster.database.url, start = () => ({}) }: TortureSetup<F>,
  faults: readonly (F | Fault)[],
  seed: number,
): Promise<TortureResult> => {
  const random = randomFrom(seed);
  const nodes = new Map<number, Awaited<ReturnType<typeof cluster.start>>>();
  const starts = new Map<number, number>();
  const startNode = async (n: number): Promise<void> => {
    const startIndex = starts.get(n) ?? 0;
    starts.set(n, startIndex + 1);
    const options = start(n, startIndex);
    nodes.set(n, await cluster.start(n, { ...options, env: { ...ENOUGH_LINES, ...options.env } }));
  };
  for (const n of NODE_NUMBERS) await startNode(n);
  const firstNode = nodes.get(1);
  if (!firstNode) throw new Error("no node");
  const { token } = await new Client(firstNode.url).signIn(ADMIN.email, ADMIN.password);
  await recordWriters(await getFinalUrl());
  const pickNode = (): NodeProcess | undefined => [...nodes.values()][Math.floor(random() * nodes.size)];
  const load = new ClusterLoad(pickNode, token ?? "");
  const shards = hasOnlyActiveNodes()
    ? await ShardsLoad.make(pickNode, {
        token: token ?? "",
        random,
        minutes: toMinutes(faults),
      })
    : undefined;
  if (shards) await recordShardWriters(await getFinalUrl());
  load.start();
  shards?.start();
  const describeLogs = (): string =>
    [...nodes.values()].map((node) => `${node.id}:\n${node.output().slice(-3000)}`).join("\n");
  const waitForProgress = async (after: string): Promise<number> => {
    const acknowledgedBefore = load.acknowledged;
    load.resetGap();
    shards?.resetGap();
    const hasProgress = (): boolean => load.acknowledged >= acknowledgedBefore + 10;
    await until(hasProgress, { what: `writes to continue after ${after}` }).catch((error) => {
      throw new Error(`${(error as Error).message}; the nodes logged\n${describeLogs()}`);
    });
    return load.maxGapMs;
  };
  await waitForProgress("the start");
  const pauses: Pause[] = [];
  const problems: string[] = [];
  for (const fault of faults) {
    const active =
      (shards && pickNode()) ??
      (await until(() => cluster.active().catch(() => undefined), { what: "an active node" }));
    const activeNumber = [...nodes].find(([, { id }]) => id === active.id)?.[0] ?? 1;
    const spare = NODE_NUMBERS.find((n) => n !== activeNumber) ?? 2;
    const endedNode = findEndedNode(fault, activeNumber, spare);
    if (endedNode) nodes.get(endedNode.node)?.signal(endedNode.signal);
    if (fault === "cut") await cluster.database.cutConnections();
    const pauseMs = STOP_MS[fault];
    if (pauseMs !== undefined) {
      active.signal("SIGSTOP");
      await Bun.sleep(pauseMs);
      active.signal("SIGCONT");
    }
    const ongoingFault = await extraFault?.(fault as F, {
      active: activeNumber,
      spare,
      nodes,
      acknowledged: () => load.acknowledged,
    });
    const writeGapMs = await waitForProgress(fault);
    if (shards)
      await until(() => shards.hasAcceptedAll, { what: `lines of every shard to be accepted after ${fault}` }).catch(
        (error) => problems.push(`${(error as Error).message}: ${describeLogs()}`),
      );
    const ms = Math.max(writeGapMs, shards?.maxWaitMs ?? 0);
    pauses.push({ fault, ms });
    if (ms > getMaxPauseMs(fault))
      problems.push(`nothing was acknowledged for ${Math.round(ms)} ms after ${fault}; ${describeLogs()}`);
    await ongoingFault?.end?.();
    if (endedNode) await nodes.get(endedNode.node)?.exited;
    // A node that was replaced ends on its own, as soon as it learns about its replacement.
    else
      await until(async () => (await isSettled(active)) === true, {
        what: "the node to serve, to be on standby or to end",
      });
    for (const [n, node] of nodes) {
      if (await hasEnded(node)) await startNode(n);
    }
    if (shards) await Bun.sleep(random() * MAX_GAP_MS);
  }
  await load.stop();
  await until(() => cluster.active().catch(() => undefined), { what: "an active node" });
  // Read from the database, because lists over HTTP end after a thousand rows.
  const rows = await loadRowsByWriter(await getFinalUrl());
  // Shards can return to an earlier owner. Then the order of first writes says nothing; only the owner at the time of a write does.
  const rowsToCheck = shards ? rows.map(({ name }) => ({ name, epoch: 0 })) : rows;
  if (shards)
    problems.push(...(await shards.finish()), ...checkShardEvents(await loadShardEvents(await getFinalUrl())));
  return {
    ...(shards ? { parts: shards.counts } : {}),
    acknowledged: load.acknowledged,
    unknown: load.count("unknown"),
    refused: load.count("refused"),
    pauses,
    problems: [...checkWrites(load.writes, rowsToCheck), ...load.problems, ...problems],
  };
};

const serverCluster = async (options: CheckOptions): Promise<string> => {
  const run: TortureRun = (faults, seed) => tortureCluster(faults as Fault[], seed);
  return `${options.rounds * FAULTS.length} faults on three nodes, ${await tortureRounds(options, { faults: FAULTS, run })}`;
};

/** Kills of each node per cluster: creating a cluster, and checking everything at the end, takes longer than a kill. */
const KILLS_EACH = 10;

/** Kills each of three nodes one after the other, no matter which role it has. */
const checkEachKilled = async ({ rounds, ...options }: CheckOptions): Promise<string> => {
  const run: TortureRun = async (faults, seed) => {
    await using cluster = await startCluster();
    return await torture<string>({ cluster }, faults, seed);
  };
  const killsPerNode = Math.min(rounds, KILLS_EACH);
  const clusters = Math.ceil(rounds / killsPerNode);
  const faults = ["kill-1", "kill-2", "kill-3"].flatMap((kill) => new Array<string>(killsPerNode).fill(kill));
  const summary = await tortureRounds({ rounds: clusters, ...options }, { faults, run });
  return `each of three nodes killed ${clusters * killsPerNode} times, ${summary}`;
};

export const checks: readonly Check[] = needs.postgres.found
  ? [
      { name: "cluster: killed, stopped and cut off", run: serverCluster },
      { name: "cluster: each node killed", run: checkEachKilled },
    ]
  : [];
