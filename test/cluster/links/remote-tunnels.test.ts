// A client of one node and agents of others, over real links: each node has its own coordinator.
import { afterEach, expect, spyOn, test } from "bun:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Clock, systemClock } from "#base/clock.ts";
import { uuid, uuidFromBytes, uuidToBytes } from "#base/ids.ts";
import type { OtherNode, Shards } from "#base/shards.ts";
import { ShardIndex } from "#db/shard-index.ts";
import { LostGuests } from "#domain/tailnet/lost-guests.ts";
import { connectCoordinators } from "#src/cluster/location.ts";
import { listAgentAddresses } from "#src/tailnet/addresses.ts";
import { Coordinator } from "#src/tailnet/coordinator.ts";
import type { Peer } from "#src/tailnet/peer.ts";
import { createAgentRules, createClientRules } from "#src/tailnet/peer-rules.ts";
import {
  type CoordinateRequest,
  CoordinateRequestSchema,
  CoordinateResponse_PeerUpdate_Kind as Kind,
} from "#src/wire/gen/tailnet_pb.ts";
import { createLinkedNode } from "#test/support/cluster/linked-node.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

const openNodes: Disposable[] = [];
afterEach(() => {
  for (const node of openNodes.splice(0)) node[Symbol.dispose]();
});

/** Creates nodes, each with a coordinator. `owner` returns the node with an agent's shard, and may be changed. */
const createCluster = (names: readonly string[], clock: Clock = systemClock) => {
  const owner = new Map<string, string>();
  const ids: string[] = [];
  const nodes = new Map<string, { coordinator: Coordinator; place: OtherNode; stop(): void }>();
  for (const name of names) {
    const node = createLinkedNode(name);
    openNodes.push(node);
    const getOwner = (shard: number) => owner.get(ids[shard] ?? "");
    const shards: Shards = {
      arrivals: 0,
      isFirst: name === names[0],
      has: (shard) => getOwner(shard) === name,
      nodeOf: (shard) => (getOwner(shard) === name ? undefined : nodes.get(getOwner(shard) ?? "")?.place),
    };
    const index = new ShardIndex({ get: () => Promise.resolve(undefined) });
    index.findShardOf = (_, id) => ids.indexOf(id);
    const coordinator = new Coordinator();
    connectCoordinators({ clock, shards, index, links: node.links }, coordinator);
    nodes.set(name, { coordinator, place: node.nodeRef, stop: () => node[Symbol.dispose]() });
  }
  const getNode = (name: string) => {
    const node = nodes.get(name);
    if (!node) throw new Error(`there is no node ${name}`);
    return node;
  };
  return {
    getNode,
    owner,
    connectAgent(name: string, id = uuid()) {
      if (!ids.includes(id)) ids.push(id);
      owner.set(id, name);
      return connectPeer(getNode(name).coordinator, { id, rules: createAgentRules(id) });
    },
    connectClient(name: string, id = uuid()) {
      return connectPeer(getNode(name).coordinator, {
        id,
        isWatched: true,
        rules: createClientRules(async () => undefined),
      });
    },
  };
};

/** Connects a peer, and records the messages that it receives, such as `NODE 7 of agent`. */
const connectPeer = (coordinator: Coordinator, options: Parameters<Coordinator["join"]>[0]) => {
  const messages: string[] = [];
  const queue: CoordinateRequest[] = [];
  let wake = Promise.withResolvers<void>();
  const requests = async function* () {
    for (;;) {
      for (const request of queue.splice(0)) yield request;
      await wake.promise;
      wake = Promise.withResolvers<void>();
    }
  };
  const connectionLost = new AbortController();
  let peer: Peer | undefined;
  const readMessages = async (): Promise<void> => {
    const stream = coordinator.serve(options, requests(), connectionLost.signal, (joinedPeer) => {
      peer = joinedPeer;
    });
    for await (const { peerUpdates = [], error } of stream) {
      if (error) messages.push(error);
      for (const { id, kind, node } of peerUpdates) {
        const number = node?.id === undefined ? "" : ` ${node.id}`;
        messages.push(`${Kind[kind as Kind]}${number} of ${uuidFromBytes(id as Uint8Array)}`);
      }
    }
  };
  void readMessages();
  const send = (request: MessageInitShape<typeof CoordinateRequestSchema>): void => {
    queue.push(create(CoordinateRequestSchema, request));
    wake.resolve();
  };
  const addresses = [`${listAgentAddresses(options.id)[0]?.slice(1, -1)}/128`];
  return {
    id: options.id,
    messages,
    peer: () => peer as Peer,
    sendNode: (number: number) =>
      send({ updateSelf: { node: { id: BigInt(number), addresses, allowedIps: addresses } } }),
    addTunnel: (id: string) => send({ addTunnel: { id: uuidToBytes(id) } }),
    removeTunnel: (id: string) => send({ removeTunnel: { id: uuidToBytes(id) } }),
    sendReady: (id: string) => send({ readyForHandshake: [{ id: uuidToBytes(id) }] }),
    disconnect: () => send({ disconnect: {} }),
    abort: () => connectionLost.abort(),
    async receives(message: string) {
      await until(() => messages.includes(message), { what: `${message}, received: ${messages}` });
      messages.length = 0;
    },
  };
};

test("[CP-66] a client and the agents of all nodes see each other, with later updates and readiness", async () => {
  const nodes = createCluster(["a", "b", "c"]);
  const client = nodes.connectClient("a");
  const agents = ["a", "b", "c"].map((name) => nodes.connectAgent(name));
  client.sendNode(1);
  for (const agent of agents) {
    agent.sendNode(5);
    client.addTunnel(agent.id);
    await client.receives(`NODE 5 of ${agent.id}`);
    await agent.receives(`NODE 1 of ${client.id}`);
    agent.sendNode(6);
    await client.receives(`NODE 6 of ${agent.id}`);
    agent.sendReady(client.id);
    await client.receives(`READY_FOR_HANDSHAKE of ${agent.id}`);
  }
  client.sendNode(2);
  for (const agent of agents) await agent.receives(`NODE 2 of ${client.id}`);
  // The client's own node checks its access, and closes the tunnels when the access ends.
  for (const agent of agents) {
    client.peer().closeTunnel(agent.id);
    await client.receives(`DISCONNECTED of ${agent.id}`);
    await agent.receives(`DISCONNECTED of ${client.id}`);
  }
});

test("[CP-66] notifies the agents of all nodes when a client disconnects, is lost, or loses access", async () => {
  const nodes = createCluster(["a", "b"]);
  const agent = nodes.connectAgent("b");
  agent.sendNode(5);
  for (const [method, kind] of [
    ["disconnect", "DISCONNECTED"],
    ["abort", "LOST"],
  ] as const) {
    const client = nodes.connectClient("a");
    client.sendNode(1);
    client.addTunnel(agent.id);
    await client.receives(`NODE 5 of ${agent.id}`);
    await agent.receives(`NODE 1 of ${client.id}`);
    client[method]();
    await agent.receives(`${kind} of ${client.id}`);
    if (method === "disconnect") continue;
    client.peer().closeTunnel(agent.id);
    await agent.receives(`DISCONNECTED of ${client.id}`);
  }
});

test("[CP-66] a client that reconnects as the same peer keeps its tunnels, also to other nodes", async () => {
  const nodes = createCluster(["a", "b"]);
  const agent = nodes.connectAgent("b");
  agent.sendNode(5);
  const client = nodes.connectClient("a");
  client.sendNode(1);
  client.addTunnel(agent.id);
  await agent.receives(`NODE 1 of ${client.id}`);
  const reconnected = nodes.connectClient("a", client.id);
  reconnected.sendNode(2);
  await reconnected.receives(`NODE 5 of ${agent.id}`);
  await agent.receives(`NODE 2 of ${client.id}`);
});

test("[CP-66] a tunnel follows its agent to another node, also when its node dies", async () => {
  const nodes = createCluster(["a", "b", "c"]);
  const agent = nodes.connectAgent("b");
  agent.sendNode(5);
  const client = nodes.connectClient("a");
  client.sendNode(1);
  client.addTunnel(agent.id);
  await client.receives(`NODE 5 of ${agent.id}`);
  nodes.getNode("b").stop();
  await client.receives(`LOST of ${agent.id}`);
  const movedAgent = nodes.connectAgent("c", agent.id);
  movedAgent.sendNode(6);
  await client.receives(`NODE 6 of ${agent.id}`);
  await movedAgent.receives(`NODE 1 of ${client.id}`);
  movedAgent.abort();
  await client.receives(`LOST of ${agent.id}`);
  const localAgent = nodes.connectAgent("a", agent.id);
  localAgent.sendNode(7);
  await client.receives(`NODE 7 of ${agent.id}`);
});

test("[CP-66] a lost client is kept while its own node watches its access, and dropped two minutes after that node died", async () => {
  const clock = new ManualClock();
  const nodes = createCluster(["a", "b"], clock);
  const agent = nodes.connectAgent("b");
  agent.sendNode(5);
  const client = nodes.connectClient("a");
  client.sendNode(1);
  client.addTunnel(agent.id);
  // The tunnel to the other node is opened by the next check of the shards.
  clock.advance(1_000);
  await agent.receives(`NODE 1 of ${client.id}`);
  client.abort();
  await agent.receives(`LOST of ${client.id}`);
  const { coordinator } = nodes.getNode("b");
  const confirmed = spyOn(LostGuests.prototype, "confirm");
  for (let minutes = 0; minutes < 5; minutes += 1) {
    const before = confirmed.mock.calls.length;
    clock.advance(60_000);
    await until(() => confirmed.mock.calls.length > before);
  }
  expect(coordinator.isLost(client.id)).toBe(true);
  expect(agent.messages).toEqual([]);
  nodes.getNode("a").stop();
  clock.advance(3 * 60_000);
  await agent.receives(`DISCONNECTED of ${client.id}`);
  expect(coordinator.isLost(client.id)).toBe(false);
  confirmed.mockRestore();
});
