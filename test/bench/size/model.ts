// A capacity model of a cluster: computes the load of nodes and database from rates of work and the measured cost of each kind. Pure.
// docs/spec/cluster-nodes.md describes what the model leaves out.

/** The kinds of work of agents and people, in the order of tables. */
export const KINDS = ["connect", "heartbeat", "stats", "metadata", "lines", "turn", "list"] as const;
export type Kind = (typeof KINDS)[number];

/** The cost of one item of a kind, in addition to its share of commit groups. */
export type Cost = {
  /** Batches passed to the writer, and how long each batch occupies it. */
  readonly batches: number;
  readonly batch_ms: number;
  readonly node_ms: number;
  readonly database_ms: number;
  /** Bytes from the node to the database, and from the database to the node. */
  readonly sent: number;
  readonly received: number;
  /** Number of database round trips. */
  readonly trips: number;
  readonly notices: number;
  /** CPU time of a node that only forwards the request. */
  readonly hop_ms: number;
};

/** The cost of one commit group regardless of its content, and how long it occupies the writer. */
export type Group = {
  readonly node_ms: number;
  readonly database_ms: number;
  readonly sent: number;
  readonly received: number;
  readonly trips: number;
  readonly base_ms: number;
};

export type Constants = {
  readonly group: Group;
  readonly costs: Readonly<Record<Kind, Cost>>;
  /** Load of an idle node per second: lease, polling, heartbeats. */
  readonly idle: {
    readonly node_ms: number;
    readonly database_ms: number;
    readonly sent: number;
    readonly received: number;
    readonly trips: number;
    readonly notices: number;
  };
  readonly memory: { readonly node_mb: number; readonly agent_kb: number; readonly passed_on_kb: number };
};

export type Load = {
  readonly agents: number;
  readonly nodes: number;
  /** Total number of each kind per second. */
  readonly per_s: Readonly<Record<Kind, number>>;
};

/** `node`: the requirements of one node. `database`: those of the database for all nodes. */
export type Requirements = {
  readonly node: {
    readonly batches_per_s: number;
    readonly groups_per_s: number;
    readonly writer_busy: number;
    readonly cores: number;
    readonly memory_mb: number;
    readonly agents: number;
    readonly passed_on: number;
  };
  readonly database: {
    readonly groups_per_s: number;
    readonly cores: number;
    readonly sent_per_s: number;
    readonly received_per_s: number;
    readonly trips_per_s: number;
    readonly notices_per_s: number;
    /** Notices that nodes receive: all other nodes receive each notice. */
    readonly heard_per_s: number;
    readonly connections: number;
    readonly renewals_per_s: number;
  };
};

/** Database connections of a single active node, and of each of several, as in docs/cluster.md. */
const CONNECTIONS = { single: 7, several: 13 };
/** How often per second a node renews its lease and reads the shards, in a single query. */
const RENEWALS = 2;

/**
 * Returns the groups per second of a writer with one group in progress: batches that arrive in the meantime form the next group. If none
 * arrives, the writer is idle until the next random arrival. The result is computed iteratively, because a larger group takes longer.
 */
export const groupsPerSecond = (batches_per_s: number, base_ms: number, batch_ms: number): number => {
  if (batches_per_s <= 0) return 0;
  let groups = batches_per_s;
  for (let step = 0; step < 200; step++) {
    const seconds = (base_ms + (batch_ms * batches_per_s) / groups) / 1000;
    const next = 1 / (seconds + Math.exp(-batches_per_s * seconds) / batches_per_s);
    if (Math.abs(next - groups) < 1e-9 * groups) break;
    groups = (groups + Math.min(next, batches_per_s)) / 2;
  }
  return groups;
};

/**
 * Returns the requirements of this load. Agents are evenly distributed and connect to any node, so all but one in n requests are forwarded.
 */
export const computeRequirements = (
  { agents, nodes, per_s }: Load,
  { group, costs, idle, memory }: Constants,
): Requirements => {
  const sum = (read: (cost: Cost) => number): number =>
    KINDS.reduce((total, kind) => total + per_s[kind] * read(costs[kind]), 0);
  const forwardedShare = (nodes - 1) / nodes;
  const batches = sum((cost) => cost.batches) / nodes;
  const batch_ms = sum((cost) => cost.batches * cost.batch_ms) / nodes / (batches || 1);
  const groups = groupsPerSecond(batches, group.base_ms, batch_ms);
  const allGroups = groups * nodes;
  const notices = sum((cost) => cost.notices) + nodes * idle.notices;
  return {
    node: {
      batches_per_s: batches,
      groups_per_s: groups,
      writer_busy: (groups * group.base_ms + batches * batch_ms) / 1000,
      cores:
        (sum((cost) => cost.node_ms + forwardedShare * cost.hop_ms) / nodes + groups * group.node_ms + idle.node_ms) /
        1000,
      memory_mb: memory.node_mb + (agents / nodes) * ((memory.agent_kb + forwardedShare * memory.passed_on_kb) / 1024),
      agents: agents / nodes,
      passed_on: (agents * forwardedShare) / nodes,
    },
    database: {
      groups_per_s: allGroups,
      cores: (sum((cost) => cost.database_ms) + allGroups * group.database_ms + nodes * idle.database_ms) / 1000,
      sent_per_s: sum((cost) => cost.sent) + allGroups * group.sent + nodes * idle.sent,
      received_per_s: sum((cost) => cost.received) + allGroups * group.received + nodes * idle.received,
      trips_per_s: sum((cost) => cost.trips) + allGroups * group.trips + nodes * idle.trips,
      notices_per_s: notices,
      heard_per_s: notices * (nodes - 1),
      connections: nodes * (nodes === 1 ? CONNECTIONS.single : CONNECTIONS.several),
      renewals_per_s: nodes * RENEWALS,
    },
  };
};

/** The totals that were measured in a time window. */
export type Window = {
  readonly seconds: number;
  readonly done: number;
  readonly groups: number;
  readonly batches: number;
  /** How long groups were in progress. */
  readonly writing_ms: number;
  readonly node_ms: number;
  readonly database_ms: number;
  readonly sent: number;
  readonly received: number;
  readonly round_trips: number;
  readonly notices: number;
};

/** Derives the cost of a group from two windows of the same work, one of which has many batches per group. */
export const deriveGroup = (single: Window, grouped: Window): Group => {
  const determinant = single.groups * grouped.batches - grouped.groups * single.batches;
  const deriveBase = (read: (window: Window) => number): number =>
    Math.max(0, (read(single) * grouped.batches - read(grouped) * single.batches) / determinant);
  return {
    node_ms: deriveBase(({ node_ms }) => node_ms),
    database_ms: deriveBase(({ database_ms }) => database_ms),
    sent: deriveBase(({ sent }) => sent),
    received: deriveBase(({ received }) => received),
    trips: deriveBase(({ round_trips }) => round_trips),
    base_ms: deriveBase(({ writing_ms }) => writing_ms),
  };
};

/** Subtracts the background load that was measured in `quiet`. */
export const subtractIdle = (window: Window, quiet: Window): Window => {
  const withoutIdle = (read: (measuredWindow: Window) => number): number =>
    Math.max(0, read(window) - (read(quiet) / quiet.seconds) * window.seconds);
  return {
    seconds: window.seconds,
    done: window.done,
    groups: withoutIdle(({ groups }) => groups),
    batches: withoutIdle(({ batches }) => batches),
    writing_ms: withoutIdle(({ writing_ms }) => writing_ms),
    node_ms: withoutIdle(({ node_ms }) => node_ms),
    database_ms: withoutIdle(({ database_ms }) => database_ms),
    sent: withoutIdle(({ sent }) => sent),
    received: withoutIdle(({ received }) => received),
    round_trips: withoutIdle(({ round_trips }) => round_trips),
    notices: withoutIdle(({ notices }) => notices),
  };
};

/** Derives the cost of one item of a kind from a window with only that kind, without the cost of groups. */
export const deriveCost = (window: Window, group: Group, hop_ms = 0): Cost => {
  const perItem = (total: number, perGroup: number): number =>
    Math.max(0, total - window.groups * perGroup) / window.done;
  return {
    // A group that only notifies other nodes has no batch.
    batches: Math.max(window.batches, window.groups) / window.done,
    batch_ms:
      Math.max(0, window.writing_ms - window.groups * group.base_ms) / Math.max(window.batches, window.groups, 1),
    node_ms: perItem(window.node_ms, group.node_ms),
    database_ms: perItem(window.database_ms, group.database_ms),
    sent: perItem(window.sent, group.sent),
    received: perItem(window.received, group.received),
    trips: perItem(window.round_trips, group.trips),
    notices: window.notices / window.done,
    hop_ms,
  };
};
