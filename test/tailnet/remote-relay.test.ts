// The relays of several nodes: clients use the relay of the first node, and the peer of another node uses the relay of that node.
import { expect, test } from "bun:test";
import type { Shards } from "#base/shards.ts";
import { type RelayMessage, RemoteRelay } from "#domain/tailnet/remote-relay.ts";
import { createKeyPair, deriveSharedKey, seal } from "#src/tailnet/box.ts";
import { encodeFrame, FRAME, FrameReader } from "#src/tailnet/derp-frame.ts";
import { LocalLink } from "#src/tailnet/peer/local-link.ts";
import { Relay } from "#src/tailnet/relay.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const text = (message: string): Uint8Array => new TextEncoder().encode(message);
const toText = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** Creates nodes, each with a relay. `state.first` is the node to which clients connect. */
const createNodes = (...names: string[]) => {
  const clock = new ManualClock();
  const state: { first: string | undefined; isCut: boolean } = { first: names[0], isCut: false };
  const created = new Map<string, { relay: Relay; remote: RemoteRelay }>();
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
        await turn();
        inFlight -= 1;
        if (state.isCut) throw new Error("cut");
        created.get(node.id)?.remote.receive(name, JSON.parse(JSON.stringify(message)) as RelayMessage);
      },
    });
    relay.others = remote;
    created.set(name, { relay, remote });
  }
  return {
    clock,
    state,
    node: (name: string) => created.get(name) as { relay: Relay; remote: RemoteRelay },
    getMaxInFlight: () => maxInFlight,
    settled: () => until(() => inFlight === 0),
  };
};

/** Connects a client, such as an agent, to this relay. Records the packets that it has received. */
const connectClient = (relay: Relay) => {
  const pair = createKeyPair();
  const got: string[] = [];
  const reader = new FrameReader();
  const relayClient = relay.connect({
    transmit(bytes) {
      for (const { type, payload } of reader.push(bytes.slice()))
        if (type === FRAME.receive_packet) got.push(toText(payload.subarray(32)));
      return bytes.length;
    },
    close: () => {},
  });
  const shared = deriveSharedKey(pair.secret, relay.key.public) as Uint8Array;
  relayClient.push(encodeFrame(FRAME.client_info, pair.public, seal(shared, text('{"version":2}'))));
  const send = (to: Uint8Array, packet: string): void =>
    relayClient.push(encodeFrame(FRAME.send_packet, to, text(packet)));
  return { key: pair.public, got, send };
};

const createPeer = (relay: Relay) => {
  const key = createKeyPair();
  const got: string[] = [];
  const link = new LocalLink({ relay, key, receive: (_from, packet) => got.push(toText(packet)) });
  const send = (to: Uint8Array, packet: string): void => link.send(to, text(packet));
  return { key: key.public, got, link, send };
};

test("[CP-64] a peer of another node and a client of the first node's relay reach each other, whichever side sends first", async () => {
  const { node, settled } = createNodes("a", "b", "c");
  const agent = connectClient(node("a").relay);
  const [own, other] = [createPeer(node("b").relay), createPeer(node("c").relay)];
  await settled();
  agent.send(own.key, "from the agent");
  await until(() => own.got.length === 1);
  own.send(agent.key, "one");
  own.send(agent.key, "two");
  other.send(agent.key, "three");
  await until(() => agent.got.length === 3);
  expect([own.got, agent.got.sort()]).toEqual([["from the agent"], ["one", "three", "two"]]);
});

test("[CP-64] when another node becomes the first one, its new clients and the peers of all nodes reach each other", async () => {
  const { node, state, clock, settled } = createNodes("a", "b", "c");
  const own = createPeer(node("c").relay);
  state.first = undefined;
  own.send(createKeyPair().public, "to an absent peer");
  expect(own.link.dropped).toBe(1);
  state.first = "b";
  const agent = connectClient(node("b").relay);
  clock.advance(2_000);
  await settled();
  agent.send(own.key, "again");
  await until(() => own.got.length === 1);
  own.send(agent.key, "still here");
  await until(() => agent.got.length === 1);
});

test("[CP-64] undeliverable packets are dropped: few are queued for a node, and few are in transit", async () => {
  const { node, state, getMaxInFlight, settled } = createNodes("a", "b");
  const agent = connectClient(node("a").relay);
  const own = createPeer(node("b").relay);
  await settled();
  for (let i = 0; i < 5_000; i++) own.send(agent.key, String(i));
  await until(() => agent.got.includes("4999"));
  // The newest 512 packets of one turn.
  expect(agent.got).toHaveLength(512);
  expect(getMaxInFlight()).toBeLessThanOrEqual(5);
  state.isCut = true;
  own.send(agent.key, "lost");
  await until(() => node("b").remote.lost > 0);
  state.isCut = false;
  own.send(agent.key, "after it");
  await until(() => agent.got.at(-1) === "after it");
  expect(agent.got).not.toContain("lost");
});
