// The cost of each kind of work on this machine, measured one after the other on the same node, without other work than the background
// load.
import type { Work } from "./agents.ts";
import {
  type Constants,
  type Cost,
  deriveCost,
  deriveGroup,
  type Group,
  type Kind,
  subtractIdle,
  type Window,
} from "./model.ts";
import type { SizeWorld } from "./world.ts";

/** The interval of an agent's heartbeats. */
export const HEARTBEAT_S = 15;
const SECONDS = 6;
/** Two heartbeats of every agent. */
const QUIET_SECONDS = 2 * HEARTBEAT_S;
/** Requests of a kind per second, and the number of callers that work without pauses. */
const RATE = 80;
const CALLERS = 64;
const LISTS = 5;

const toWork = (work: Partial<Work>): Work => ({ seconds: SECONDS, per_s: {}, ...work });

/** Returns the load per second of an idle node. */
const toIdlePerSecond = (window: Window, group: Group): Constants["idle"] => {
  const { node_ms, database_ms, sent, received, trips, notices } = deriveCost(
    { ...window, done: window.seconds },
    group,
  );
  return { node_ms, database_ms, sent, received, trips, notices };
};

/** Measures with this many agents. `log` receives a line for each step. */
export const calibrate = async (world: SizeWorld, agents: number, log: (line: string) => void): Promise<Constants> => {
  // This is a warm-up, because cold code costs more.
  await world.measure(toWork({ per_s: { lines: 40, turn: 5, list: 5 } }));
  const idle = await world.measure(toWork({}));
  log(`idle: ${JSON.stringify(idle)}`);
  const memoryBefore = world.memory();
  const connecting = await world.measure({ connect: agents, seconds: HEARTBEAT_S });
  log(`connect: ${JSON.stringify(connecting)}`);
  const memoryAfter = world.memory();
  await world.measure(toWork({ per_s: { metadata: 40, stats: 40 }, seconds: 3 }));
  const quiet = await world.measure({ seconds: QUIET_SECONDS, per_s: {} });
  log(`connected: ${JSON.stringify(quiet)}`);
  const measureKind = async (kind: Kind, work: Partial<Work>): Promise<Window> => {
    const window = await world.measure(toWork(work));
    log(`${kind}: ${JSON.stringify(window)}`);
    return subtractIdle({ ...window, done: window.result.done[kind] ?? 0 }, quiet);
  };
  // Statistics cost the least of all work, apart from their commit group.
  const stats = await measureKind("stats", { per_s: { stats: RATE } });
  const group = deriveGroup(stats, await measureKind("stats", { callers: { stats: CALLERS } }));
  const lines = await measureKind("lines", { per_s: { lines: RATE } });
  const metadata = await measureKind("metadata", { per_s: { metadata: RATE } });
  // Other work changes the list in the meantime, because an unchanged list is answered from the cache.
  const changes = { metadata: RATE / 4, stats: RATE / 4, lines: RATE / 4 };
  const changing = await measureKind("list", { per_s: changes });
  const lists = subtractIdle(await measureKind("list", { per_s: { ...changes, list: LISTS } }), changing);
  const turn = await measureKind("turn", { per_s: { turn: 10 } });
  // This is last, because it moves the agents off the node.
  const spare = await world.behindSpare([
    { connect: agents, seconds: HEARTBEAT_S },
    toWork({ per_s: { lines: 40 } }),
    toWork({ per_s: { list: 40 } }),
  ]);
  log(`behind a spare: ${JSON.stringify(spare)}`);
  const getHopMs = (index: number): number =>
    (spare.results[index]?.spare_ms ?? 0) / (spare.results[index]?.count ?? 1);
  const hop = { connect: getHopMs(0), lines: getHopMs(1), list: getHopMs(2) };
  const costs: Record<Kind, Cost> = {
    connect: deriveCost(subtractIdle(connecting, idle), group, hop.connect),
    // Heartbeats are so rare that the disk is idle between them, which would count as the writer's time. So this uses the figure of
    // statistics.
    heartbeat: {
      ...deriveCost(subtractIdle({ ...quiet, done: (agents * quiet.seconds) / HEARTBEAT_S }, idle), group),
      batch_ms: deriveCost(stats, group).batch_ms,
    },
    stats: deriveCost(stats, group, hop.lines),
    metadata: deriveCost(metadata, group, hop.lines),
    lines: deriveCost(lines, group, hop.lines),
    turn: deriveCost(turn, group, hop.lines),
    list: deriveCost(lists, group, hop.list),
  };
  return {
    group,
    costs,
    idle: toIdlePerSecond(idle, group),
    memory: {
      node_mb: memoryBefore,
      agent_kb: ((memoryAfter - memoryBefore) * 1024) / agents,
      passed_on_kb: Math.max(0, ((spare.full_mb - spare.empty_mb) * 1024) / agents),
    },
  };
};
