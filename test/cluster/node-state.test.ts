// A node's log messages: one line per change, and none without changes.
import { expect, test } from "bun:test";
import type { ClusterView } from "#db/pg/lease.ts";
import { describeChanges, type SeenState, toSeenState } from "#db/pg/node-state.ts";

const view = (required: boolean, synchronous: number | undefined): ClusterView => ({
  active: undefined,
  members: [],
  nodes: [],
  now: 0,
  standby: { required, synchronous },
});
const SPARE: SeenState = {
  node: "spare",
  lease: "elsewhere",
  database: "answers",
  standby: "connected",
  holder: "a:7080",
};
const listChanges = (before: SeenState | undefined, after: SeenState): string[] =>
  describeChanges(before, after).map(({ level, text }) => `${level}: ${text}`);

test("[CL-17] the state of a node is derived from its lease, the database's responses and its standby", () => {
  const describeState = (overrides: Partial<Parameters<typeof toSeenState>[0]>): string => {
    const state = { isActive: false, serves: false, isSilent: false, leader: undefined, view: undefined, ...overrides };
    const { node, lease, database, standby } = toSeenState(state);
    return `${node} ${lease} ${database} ${standby}`;
  };
  expect(describeState({})).toBe("spare free answers not required");
  expect(describeState({ leader: "a:7080", view: view(true, 1) })).toBe("spare elsewhere answers connected");
  expect(describeState({ isActive: true, serves: true, view: view(true, 0) })).toBe("active held answers missing");
  expect(describeState({ isActive: true, isSilent: true, view: view(true, undefined) })).toBe(
    "active lapsed silent hidden",
  );
});

test("[CL-17] each change is one log line", () => {
  expect(listChanges(undefined, SPARE)).toEqual(["info: node {id} stands by: {holder} is active"]);
  expect(listChanges(SPARE, SPARE)).toEqual([]);
  expect(listChanges(SPARE, { ...SPARE, holder: "b:7080" })).toEqual(["info: node {id} stands by: {holder} is active"]);
  const free: SeenState = { ...SPARE, lease: "free", holder: undefined };
  expect(listChanges(undefined, free)).toEqual([]);
  expect(listChanges(SPARE, free)).toEqual(["warn: node {id} sees no active node: requests wait until there is one"]);
  const active: SeenState = { ...free, node: "active", lease: "held" };
  expect(listChanges(free, active)).toEqual(["info: node {id} is active, epoch {epoch}"]);
  const lapsed: SeenState = { ...active, lease: "lapsed", database: "silent" };
  expect(listChanges(active, lapsed)).toEqual([
    "error: node {id} could not renew its lease: it answers no requests until it can",
    "warn: the database does not answer node {id}: {reason}",
  ]);
  expect(listChanges(lapsed, active)).toEqual([
    "info: node {id} is active, epoch {epoch}",
    "info: the database answers node {id} again",
  ]);
  const missing: SeenState = { ...active, standby: "missing" };
  expect(listChanges(active, missing)).toEqual([
    "error: no synchronous standby of the database is connected: writes wait until one is",
  ]);
  expect(listChanges(missing, active)).toEqual(["info: a synchronous standby of the database is connected again"]);
  expect(listChanges(missing, { ...active, standby: "not required" })).toEqual([
    "warn: the database requires no synchronous standby any more: writes wait for none",
  ]);
  expect(listChanges(active, { ...active, standby: "hidden" })).toEqual([
    "warn: whether a standby is connected cannot be seen: grant pg_monitor to the database's user",
  ]);
});
