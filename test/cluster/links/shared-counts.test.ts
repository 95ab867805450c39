// Request limits on two nodes, over real links: a node's counts reach the other within a second.
import { afterEach, expect, test } from "bun:test";
import type { OtherNode, Shards } from "#base/shards.ts";
import { Throttle } from "#domain/users/throttle.ts";
import { SharedCounts } from "#src/cluster/shared-counts.ts";
import { createLinkedNode } from "#test/support/cluster/linked-node.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

const openNodes: Disposable[] = [];
afterEach(() => {
  for (const node of openNodes.splice(0)) node[Symbol.dispose]();
});

const LIMIT = 10;

/** Creates two nodes, each with two counters: for requests to its shards, and for reads that it answers itself. */
const createNodes = () => {
  const clock = new ManualClock();
  const [a, b] = [createLinkedNode("a"), createLinkedNode("b")];
  openNodes.push(a, b);
  const makeShards = (other: OtherNode): Shards => ({ has: () => false, isFirst: false, nodeOf: () => other });
  const createThrottles = (node: typeof a, other: OtherNode) => {
    const shared = new SharedCounts({ clock, shards: makeShards(other), links: node.links });
    return [1, 2].map(() => {
      const throttle = new Throttle(clock, LIMIT);
      throttle.others = shared.join("calls", throttle);
      return throttle;
    });
  };
  return { clock, throttles: [...createThrottles(a, b.nodeRef), ...createThrottles(b, a.nodeRef)] };
};

/** Returns how many of `count` requests pass. */
const countPassed = (throttle: Throttle | undefined, caller: string, count: number): number => {
  let passed = 0;
  for (let i = 0; i < count; i++) {
    try {
      throttle?.count(caller);
      passed++;
    } catch (error) {
      expect(error).toMatchObject({ kind: "too_many_requests", retry_after: expect.any(Number) });
    }
  }
  return passed;
};

test("[CP-69] a limit applies to all nodes together, per caller and per minute", async () => {
  const { clock, throttles } = createNodes();
  const [firstOfA, secondOfA, firstOfB] = throttles;
  expect([countPassed(firstOfA, "ada", 3), countPassed(secondOfA, "ada", 3)]).toEqual([3, 3]);
  clock.advance(1_000);
  await until(() => firstOfB?.others("ada") === 6);
  expect([countPassed(firstOfB, "ada", 9), countPassed(firstOfB, "bob", 9)]).toEqual([4, 9]);
  clock.advance(61_000);
  expect(countPassed(firstOfA, "ada", 12)).toBe(10);
});
