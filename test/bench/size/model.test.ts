// The capacity model of a cluster: its arithmetic, with synthetic costs.
import { expect, test } from "bun:test";
import {
  type Constants,
  type Cost,
  computeRequirements,
  deriveCost,
  deriveGroup,
  type Group,
  groupsPerSecond,
  KINDS,
  subtractIdle,
  type Window,
} from "./model.ts";

const group: Group = { node_ms: 0.2, database_ms: 0.3, sent: 400, received: 200, trips: 3, base_ms: 2 };
const idle = { node_ms: 5, database_ms: 2, sent: 500, received: 300, trips: 4, notices: 1 };
const NO_COST: Cost = {
  batches: 0,
  batch_ms: 0,
  node_ms: 0,
  database_ms: 0,
  sent: 0,
  received: 0,
  trips: 0,
  notices: 0,
  hop_ms: 0,
};
const forAllKinds = <T>(value: T) =>
  Object.fromEntries(KINDS.map((kind) => [kind, value])) as Record<(typeof KINDS)[number], T>;
const line: Cost = {
  ...NO_COST,
  batches: 1,
  batch_ms: 0.05,
  trips: 1,
  node_ms: 0.1,
  database_ms: 0.1,
  sent: 1000,
  notices: 0.01,
  hop_ms: 0.05,
};
const constants: Constants = {
  group,
  costs: { ...forAllKinds(NO_COST), lines: line },
  idle,
  memory: { node_mb: 150, agent_kb: 50, passed_on_kb: 10 },
};
const load = (lines: number, nodes: number) => ({ agents: 1000, nodes, per_s: { ...forAllKinds(0), lines } });

test("[BM-5] few batches have a group each, many share a group, and a writer never exceeds its capacity", () => {
  expect(groupsPerSecond(0, 2, 0.05)).toBe(0);
  expect(groupsPerSecond(1, 2, 0.05)).toBeCloseTo(1, 2);
  const busy = groupsPerSecond(10_000, 2, 0.05);
  expect(10_000 / busy).toBeGreaterThan(20);
  expect((busy * 2 + 10_000 * 0.05) / 1000).toBeLessThanOrEqual(1.0001);
});

test("[BM-5] derives the costs of a group and of each kind from windows that were built with these costs", () => {
  const makeWindow = (groups: number, batches: number): Window => ({
    seconds: 10,
    done: batches,
    groups,
    batches,
    writing_ms: groups * group.base_ms + batches * line.batch_ms,
    node_ms: groups * group.node_ms + batches * line.node_ms + 10 * idle.node_ms,
    database_ms: groups * group.database_ms + batches * line.database_ms + 10 * idle.database_ms,
    sent: groups * group.sent + batches * line.sent + 10 * idle.sent,
    received: groups * group.received + 10 * idle.received,
    round_trips: groups * group.trips + batches * line.trips + 10 * idle.trips,
    notices: batches / 100,
  });
  const quiet: Window = { ...makeWindow(0, 0), done: 0 };
  const found = deriveGroup(subtractIdle(makeWindow(500, 500), quiet), subtractIdle(makeWindow(300, 9000), quiet));
  for (const key of Object.keys(group) as (keyof Group)[]) expect(found[key]).toBeCloseTo(group[key], 6);
  const cost = deriveCost(subtractIdle(makeWindow(500, 700), quiet), group, line.hop_ms);
  for (const key of Object.keys(line) as (keyof Cost)[]) expect(cost[key]).toBeCloseTo(line[key], 6);
});

test("[BM-5] with more nodes, each node does less of the work and forwards more requests", () => {
  const [oneNode, tenNodes] = [
    computeRequirements(load(1000, 1), constants),
    computeRequirements(load(1000, 10), constants),
  ];
  expect(tenNodes.node.batches_per_s * 10).toBeCloseTo(oneNode.node.batches_per_s, 6);
  expect(oneNode.node.passed_on).toBe(0);
  expect(tenNodes.node.passed_on).toBe(90);
  expect(tenNodes.node.memory_mb).toBeCloseTo(150 + 100 * (59 / 1024), 6);
  // Groups are smaller, so the database has more flushes.
  expect(tenNodes.database.groups_per_s).toBeGreaterThan(oneNode.database.groups_per_s);
  expect(oneNode.database.heard_per_s).toBe(0);
  expect(tenNodes.database.notices_per_s).toBeCloseTo(20, 6);
  expect(tenNodes.database.heard_per_s).toBeCloseTo(180, 6);
  expect(tenNodes.database.connections).toBe(130);
});
