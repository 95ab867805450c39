// Views of the whole cluster: any node collects the state of all nodes over real connections.
import { afterEach, expect, test } from "bun:test";
import { EndingClock, systemClock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import type { OtherNode, Shards } from "#base/shards.ts";
import { Topics } from "#base/topics.ts";
import { ShardIndex } from "#db/shard-index.ts";
import { Network } from "#domain/tailnet/network.ts";
import { createSharedLocation } from "#src/cluster/location.ts";
import { createAgentRules } from "#src/tailnet/peer-rules.ts";
import { createLinkedNode } from "#test/support/cluster/linked-node.ts";

const disposables: Disposable[] = [];
afterEach(() => {
  for (const disposable of disposables.splice(0)) disposable[Symbol.dispose]();
});

/** Creates nodes, each with a network of this many peers. */
const createCluster = (...counts: number[]) => {
  const nodes = counts.map((_, i) => createLinkedNode(`node-${i}`));
  disposables.push(...nodes);
  return counts.map((count, i) => {
    const node = nodes[i] as (typeof nodes)[number];
    const others: OtherNode[] = nodes.filter((other) => other !== node).map(({ nodeRef }) => nodeRef);
    const shards: Shards = { has: () => false, isFirst: i === 0, nodeOf: (shard) => others[shard % others.length] };
    const network = new Network({ store: undefined as never, clock: systemClock, topics: new Topics() });
    for (let n = 0; n < count; n++) {
      const id = uuid();
      network.coordinator.join({ id, rules: createAgentRules(id) });
    }
    // Guests are counted by their own node only.
    network.coordinator.join({ id: uuid(), rules: createAgentRules(uuid()), isGuest: true });
    const index = new ShardIndex({ get: () => Promise.resolve(undefined) });
    const clock = new EndingClock(systemClock);
    disposables.push(clock);
    const location = createSharedLocation({ clock, shards, index, links: node.links });
    location.joinNetwork(network);
    const usage = { flushed: 0 };
    return { network, usage, flushOthers: location.share("flush", async () => void usage.flushed++), node };
  });
};

test("[CP-70] the private network is shown and counted over all nodes, each peer once, without unresponsive nodes", async () => {
  const [firstNode, , thirdNode] = createCluster(1, 2, 3);
  const network = await firstNode?.network.loadAll();
  expect([network?.peers.length, network?.coordinator.peers]).toEqual([6, 6]);
  thirdNode?.node[Symbol.dispose]();
  expect((await firstNode?.network.loadAll())?.coordinator.peers).toBe(3);
});

test("[CP-70] a usage report includes what any node has recorded: all nodes write their records first", async () => {
  const [firstNode, secondNode, thirdNode] = createCluster(0, 0, 0);
  await secondNode?.flushOthers();
  expect([firstNode, secondNode, thirdNode].map((node) => node?.usage.flushed)).toEqual([1, 0, 1]);
});
