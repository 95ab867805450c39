// The cost of each kind of work on this machine: one after the other on the same node, each without other work except the background load.
import type { Work } from "./agents.ts";
import { type Constants, type Cost, costOf, type Group, groupOf, type Kind, less, type Window } from "./model.ts";
import type { SizeWorld } from "./world.ts";

/** The interval of an agent's heartbeats. */
export const HEARTBEAT_S = 15;
const SECONDS = 6;
/** Two heartbeats of every agent. */
const QUIET_S = 2 * HEARTBEAT_S;
/** Requests of a kind per second, and the number of callers without a break. */
const RATE = 80;
const CALLERS = 64;
const LISTS = 5;

const each = (work: Partial<Work>): Work => ({ seconds: SECONDS, per_s: {}, ...work });

/** Returns the load per second of an idle node. */
const ofSecond = (window: Window, group: Group): Constants["idle"] => {
  const { node_ms, database_ms, sent, received, trips, notices } = costOf({ ...window, done: window.seconds }, group);
  return { node_ms, database_ms, sent, received, trips, notices };
};

/** Measures with this many agents; `log` receives each step. */
export const calibrate = async (world: SizeWorld, agents: number, log: (line: string) => void): Promise<Constants> => {
  // Warm-up: cold code costs more.
  await world.seen(each({ per_s: { lines: 40, turn: 5, list: 5 } }));
  const idle = await world.seen(each({}));
  log(`idle: ${JSON.stringify(idle)}`);
  const before = world.memory();
  const connecting = await world.seen({ connect: agents, seconds: HEARTBEAT_S });
  log(`connect: ${JSON.stringify(connecting)}`);
  const after = world.memory();
  await world.seen(each({ per_s: { metadata: 40, stats: 40 }, seconds: 3 }));
  const quiet = await world.seen({ seconds: QUIET_S, per_s: {} });
  log(`connected: ${JSON.stringify(quiet)}`);
  const seen = async (kind: Kind, work: Partial<Work>): Promise<Window> => {
    const window = await world.seen(each(work));
    log(`${kind}: ${JSON.stringify(window)}`);
    return less({ ...window, done: window.did.done[kind] ?? 0 }, quiet);
  };
  // Of all work, statistics have the least cost besides their commit group.
  const stats = await seen("stats", { per_s: { stats: RATE } });
  const group = groupOf(stats, await seen("stats", { callers: { stats: CALLERS } }));
  const lines = await seen("lines", { per_s: { lines: RATE } });
  const metadata = await seen("metadata", { per_s: { metadata: RATE } });
  // Changes in the meantime: an unchanged list is answered from the cache.
  const changes = { metadata: RATE / 4, stats: RATE / 4, lines: RATE / 4 };
  const changing = await seen("list", { per_s: changes });
  const lists = less(await seen("list", { per_s: { ...changes, list: LISTS } }), changing);
  const turn = await seen("turn", { per_s: { turn: 10 } });
  // Runs last, because it moves the agents off the node.
  const spare = await world.behindSpare([
    { connect: agents, seconds: HEARTBEAT_S },
    each({ per_s: { lines: 40 } }),
    each({ per_s: { list: 40 } }),
  ]);
  log(`behind a spare: ${JSON.stringify(spare)}`);
  const hopOf = (at: number): number => (spare.seen[at]?.spare_ms ?? 0) / (spare.seen[at]?.count ?? 1);
  const hop = { connect: hopOf(0), lines: hopOf(1), list: hopOf(2) };
  const costs: Record<Kind, Cost> = {
    connect: costOf(less(connecting, idle), group, hop.connect),
    // There are so few in this window that the disk idles between them, which is not the writer's work, so this uses the figure of
    // statistics.
    heartbeat: {
      ...costOf(less({ ...quiet, done: (agents * quiet.seconds) / HEARTBEAT_S }, idle), group),
      batch_ms: costOf(stats, group).batch_ms,
    },
    stats: costOf(stats, group, hop.lines),
    metadata: costOf(metadata, group, hop.lines),
    lines: costOf(lines, group, hop.lines),
    turn: costOf(turn, group, hop.lines),
    list: costOf(lists, group, hop.list),
  };
  return {
    group,
    costs,
    idle: ofSecond(idle, group),
    memory: {
      node_mb: before,
      agent_kb: ((after - before) * 1024) / agents,
      passed_on_kb: Math.max(0, ((spare.full_mb - spare.empty_mb) * 1024) / agents),
    },
  };
};
