// A capacity model of a cluster: computes the load of nodes and database from rates of work and the measured cost of each kind. Pure.
// docs/spec/cluster-nodes.md describes what it omits.

/** The kinds of work by agents and people, in display order. */
export const KINDS = ["connect", "heartbeat", "stats", "metadata", "lines", "turn", "list"] as const;
export type Kind = (typeof KINDS)[number];

/** The cost of one item of a kind, in addition to its share of commit groups. */
export type Cost = {
  /** Batches passed to the writer, and how long each occupies it. */
  readonly batches: number;
  readonly batch_ms: number;
  readonly node_ms: number;
  readonly database_ms: number;
  /** Bytes from the node to the database, and back. */
  readonly sent: number;
  readonly received: number;
  /** Number of database round trips. */
  readonly trips: number;
  readonly notices: number;
  /** CPU time of a node that only forwards it. */
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
  /** An idle node: lease, polling, heartbeats; per second. */
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

/** `node`: one of them. `database`: for all nodes together. */
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
    /** Notices received by nodes: each is received by all others. */
    readonly heard_per_s: number;
    readonly connections: number;
    readonly renewals_per_s: number;
  };
};

/** Database connections of a single active node, and of one of several, as in docs/cluster.md. */
const CONNECTIONS = { alone: 7, among: 13 };
/** How often per second a node renews its lease and reads the shards, in one query. */
const RENEWALS = 2;

/**
 * Returns the groups per second of a writer with one in progress: batches that arrive in the meantime form the next group. Without any, it
 * idles until the next random arrival. Computed iteratively, because a larger group takes longer.
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
  const passed = (nodes - 1) / nodes;
  const batches = sum((cost) => cost.batches) / nodes;
  const batch_ms = sum((cost) => cost.batches * cost.batch_ms) / nodes / (batches || 1);
  const groups = groupsPerSecond(batches, group.base_ms, batch_ms);
  const all = groups * nodes;
  const notices = sum((cost) => cost.notices) + nodes * idle.notices;
  return {
    node: {
      batches_per_s: batches,
      groups_per_s: groups,
      writer_busy: (groups * group.base_ms + batches * batch_ms) / 1000,
      cores:
        (sum((cost) => cost.node_ms + passed * cost.hop_ms) / nodes + groups * group.node_ms + idle.node_ms) / 1000,
      memory_mb: memory.node_mb + (agents / nodes) * ((memory.agent_kb + passed * memory.passed_on_kb) / 1024),
      agents: agents / nodes,
      passed_on: (agents * passed) / nodes,
    },
    database: {
      groups_per_s: all,
      cores: (sum((cost) => cost.database_ms) + all * group.database_ms + nodes * idle.database_ms) / 1000,
      sent_per_s: sum((cost) => cost.sent) + all * group.sent + nodes * idle.sent,
      received_per_s: sum((cost) => cost.received) + all * group.received + nodes * idle.received,
      trips_per_s: sum((cost) => cost.trips) + all * group.trips + nodes * idle.trips,
      notices_per_s: notices,
      heard_per_s: notices * (nodes - 1),
      connections: nodes * (nodes === 1 ? CONNECTIONS.alone : CONNECTIONS.among),
      renewals_per_s: nodes * RENEWALS,
    },
  };
};

/** The totals observed in a time window. */
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
  readonly turns: number;
  readonly notices: number;
};

/** Derives the cost of a group from two windows of the same work, one of which has many batches per group. */
export const deriveGroup = (alone: Window, together: Window): Group => {
  const determinant = alone.groups * together.batches - together.groups * alone.batches;
  const base = (read: (window: Window) => number): number =>
    Math.max(0, (read(alone) * together.batches - read(together) * alone.batches) / determinant);
  return {
    node_ms: base(({ node_ms }) => node_ms),
    database_ms: base(({ database_ms }) => database_ms),
    sent: base(({ sent }) => sent),
    received: base(({ received }) => received),
    trips: base(({ turns }) => turns),
    base_ms: base(({ writing_ms }) => writing_ms),
  };
};

/** Subtracts the background load, as measured in `quiet`. */
export const subtractIdle = (window: Window, quiet: Window): Window => {
  const ownShare = (read: (one: Window) => number): number =>
    Math.max(0, read(window) - (read(quiet) / quiet.seconds) * window.seconds);
  return {
    seconds: window.seconds,
    done: window.done,
    groups: ownShare(({ groups }) => groups),
    batches: ownShare(({ batches }) => batches),
    writing_ms: ownShare(({ writing_ms }) => writing_ms),
    node_ms: ownShare(({ node_ms }) => node_ms),
    database_ms: ownShare(({ database_ms }) => database_ms),
    sent: ownShare(({ sent }) => sent),
    received: ownShare(({ received }) => received),
    turns: ownShare(({ turns }) => turns),
    notices: ownShare(({ notices }) => notices),
  };
};

/** Derives the cost of one item of a kind from a window with only that kind, without the cost of groups. */
export const deriveCost = (window: Window, group: Group, hop_ms = 0): Cost => {
  const ownShare = (all: number, each: number): number => Math.max(0, all - window.groups * each) / window.done;
  return {
    // A group that only notifies other nodes has none.
    batches: Math.max(window.batches, window.groups) / window.done,
    batch_ms:
      Math.max(0, window.writing_ms - window.groups * group.base_ms) / Math.max(window.batches, window.groups, 1),
    node_ms: ownShare(window.node_ms, group.node_ms),
    database_ms: ownShare(window.database_ms, group.database_ms),
    sent: ownShare(window.sent, group.sent),
    received: ownShare(window.received, group.received),
    trips: ownShare(window.turns, group.trips),
    notices: window.notices / window.done,
    hop_ms,
  };
};
