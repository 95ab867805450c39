// The relays of several nodes: clients connect to the first node's relay, and every node's peer connects to its own relay.
import { expect, test } from "bun:test";
import type { Shards } from "#base/shards.ts";
import { type RelayMessage, RemoteRelay } from "#domain/tailnet/remote-relay.ts";
import { createKeyPair, deriveSharedKey, seal } from "#src/tailnet/box.ts";
import { encodeFrame, FRAME, FrameReader } from "#src/tailnet/derp-frame.ts";
import { LocalLink } from "#src/tailnet/peer/local-link.ts";
import { Relay } from "#src/tailnet/relay.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const encodeText = (message: string): Uint8Array => new TextEncoder().encode(message);
const decodeText = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** Creates nodes, each with a relay. `state.first` is the node to which clients connect. */
const createNodes = (...names: string[]) => {
  const clock = new ManualClock();
  const state: { first: string | undefined; isCut: boolean } = { first: names[0], isCut: false };
  const nodes = new Map<string, { relay: Relay; remote: RemoteRelay }>();
  let inFlight = 0;
  let maxInFlight = 0;
  for (const name of names) {
    const shards: Shards = {
      arrivals: 0,
      has: (shard) => shard === 0 && state.first === name,
      get isFirst() {
        return state.first === name;
      },
      nodeOf: (shard) => {
        const id = shard === 0 ? state.first : names[shard];
        return id === undefined || id === name ? undefined : { id, address: id };
      },
    };
    const relay = new Relay(clock);
    const remote = new RemoteRelay({
      clock,
      shards,
      relay,
      async send(node, message) {
        inFlight += 1;
        maxInFlight = Math.max(maxInFlight, inFlight);
        await nextTurn();
        inFlight -= 1;
        if (state.isCut) throw new Error("cut");
        nodes.get(node.id)?.remote.receive(name, JSON.parse(JSON.stringify(message)) as RelayMessage);
      },
    });
    relay.others = remote;
    nodes.set(name, { relay, remote });
  }
  return {
    clock,
    state,
    node: (name: string) => nodes.get(name) as { relay: Relay; remote: RemoteRelay },
    getMaxInFlight: () => maxInFlight,
    waitUntilIdle: () => until(() => inFlight === 0),
  };
};

/** Connects a client, such as an agent, to this relay. Records the packets that it has received. */
const connectClient = (relay: Relay) => {
  const pair = createKeyPair();
  const received: string[] = [];
  const reader = new FrameReader();
  const relayClient = relay.connect({
    transmit(bytes) {
      for (const { type, payload } of reader.push(bytes.slice()))
        if (type === FRAME.receive_packet) received.push(decodeText(payload.subarray(32)));
      return bytes.length;
    },
    close: () => {},
  });
  const shared = deriveSharedKey(pair.secret, relay.key.public) as Uint8Array;
  relayClient.push(encodeFrame(FRAME.client_info, pair.public, seal(shared, encodeText('{"version":2}'))));
  const send = (to: Uint8Array, packet: string): void =>
    relayClient.push(encodeFrame(FRAME.send_packet, to, encodeText(packet)));
  return { key: pair.public, received, send };
};

const createPeer = (relay: Relay) => {
  const key = createKeyPair();
  const received: string[] = [];
  const link = new LocalLink({ relay, key, receive: (_from, packet) => received.push(decodeText(packet)) });
  const send = (to: Uint8Array, packet: string): void => link.send(to, encodeText(packet));
  return { key: key.public, received, link, send };
};

test("[CP-64] another node's peer and a client of the first node's relay reach each other, whichever side sends first", async () => {
  const { node, waitUntilIdle } = createNodes("a", "b", "c");
  const agent = connectClient(node("a").relay);
  const [peer, otherPeer] = [createPeer(node("b").relay), createPeer(node("c").relay)];
  await waitUntilIdle();
  agent.send(peer.key, "from the agent");
  await until(() => peer.received.length === 1);
  peer.send(agent.key, "one");
  peer.send(agent.key, "two");
  otherPeer.send(agent.key, "three");
  await until(() => agent.received.length === 3);
  expect([peer.received, agent.received.sort()]).toEqual([["from the agent"], ["one", "three", "two"]]);
});

test("[CP-64] after another node becomes the first, its clients and the peers of all nodes reach each other", async () => {
  const { node, state, clock, waitUntilIdle } = createNodes("a", "b", "c");
  const peer = createPeer(node("c").relay);
  state.first = undefined;
  peer.send(createKeyPair().public, "to an absent peer");
  expect(peer.link.dropped).toBe(1);
  state.first = "b";
  const agent = connectClient(node("b").relay);
  clock.advance(2_000);
  await waitUntilIdle();
  agent.send(peer.key, "again");
  await until(() => peer.received.length === 1);
  peer.send(agent.key, "still here");
  await until(() => agent.received.length === 1);
});

test("[CP-64] limits the packets that are queued for a node or in transit, and drops undeliverable ones", async () => {
  const { node, state, getMaxInFlight, waitUntilIdle } = createNodes("a", "b");
  const agent = connectClient(node("a").relay);
  const peer = createPeer(node("b").relay);
  await waitUntilIdle();
  for (let i = 0; i < 5_000; i++) peer.send(agent.key, String(i));
  await until(() => agent.received.includes("4999"));
  // Of the packets of one turn, only the newest 512 are sent.
  expect(agent.received).toHaveLength(512);
  expect(getMaxInFlight()).toBeLessThanOrEqual(5);
  state.isCut = true;
  peer.send(agent.key, "lost");
  await until(() => node("b").remote.lost > 0);
  state.isCut = false;
  peer.send(agent.key, "after it");
  await until(() => agent.received.at(-1) === "after it");
  expect(agent.received).not.toContain("lost");
});
