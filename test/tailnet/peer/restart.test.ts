// An agent's tunnels after a restart of the server, whose new coordinator knows none of the clients.
import { expect } from "bun:test";
import { uuid } from "#base/ids.ts";
import { Coordinator } from "#src/tailnet/coordinator.ts";
import { createLocalCoordinator } from "#src/tailnet/peer/local-coordinator.ts";
import { LocalLink } from "#src/tailnet/peer/local-link.ts";
import { NetworkPeer } from "#src/tailnet/peer/network-peer.ts";
import { createClientAddress, toAgentAddressBytes } from "#src/tailnet/peer/node.ts";
import type { PeerOptions } from "#src/tailnet/peer.ts";
import { createAgentRules, createClientRules } from "#src/tailnet/peer-rules.ts";
import { Relay } from "#src/tailnet/relay.ts";
import { testInProcess as test } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

const MINUTE_MS = 60_000;

const openNetwork = () => {
  const clock = new ManualClock();
  const relay = new Relay(clock);
  const join = (role: "agent" | "client", addresses: Uint8Array[], options: PeerOptions) => {
    const peer = new NetworkPeer({
      clock,
      random: () => 0.5,
      role,
      addresses,
      link: (key, receive) => new LocalLink({ relay, key, receive }),
      accept: (connection) => connection.accept(),
    });
    let lost = new AbortController();
    return {
      peer,
      connect(coordinator: Coordinator): void {
        lost = new AbortController();
        const { signal } = lost;
        const local = createLocalCoordinator(coordinator, options);
        void peer.run({ coordinate: () => local.coordinate(signal) }).catch(() => {});
      },
      /** Breaks the connection to the coordinator without a disconnect message. */
      loseCoordinator: (): void => lost.abort(),
    };
  };
  const [agent_id, client_id] = [uuid(), uuid()];
  const rules = createClientRules(async () => undefined);
  const joinClient = (id: string) => join("client", [createClientAddress()], { id, isWatched: true, rules });
  return {
    clock,
    agent_id,
    client_id,
    agent: join("agent", toAgentAddressBytes(agent_id), { id: agent_id, rules: createAgentRules(agent_id) }),
    client: joinClient(client_id),
    other: joinClient(uuid()),
  };
};

test("[TL-28] an agent keeps a client that the coordinator does not name after a reconnect for two minutes only, also one that was lost before", async () => {
  const { clock, agent_id, agent, client, other } = openNetwork();
  const before = new Coordinator();
  agent.connect(before);
  client.connect(before);
  await client.peer.requestTunnel(agent_id);
  await until(() => agent.peer.remotes.length === 1);
  client.loseCoordinator();
  // A later message has arrived, so the agent knows that the client is lost.
  other.connect(before);
  await other.peer.requestTunnel(agent_id);
  await until(() => agent.peer.remotes.length === 2);
  await other.peer.close();
  await until(() => agent.peer.remotes.length === 1);
  clock.advance(MINUTE_MS);
  agent.loseCoordinator();
  const after = new Coordinator();
  agent.connect(after);
  await until(() => after.getNode(agent_id) !== undefined);
  clock.advance(2 * MINUTE_MS - 2_000);
  expect(agent.peer.remotes).toHaveLength(1);
  // Another reconnect gives it no more time.
  agent.loseCoordinator();
  const last = new Coordinator();
  agent.connect(last);
  await until(() => last.getNode(agent_id) !== undefined);
  clock.advance(4_000);
  expect(agent.peer.remotes).toEqual([]);
  await Promise.all([agent.peer.close(), client.peer.close()]);
});

test("[TL-28] an agent keeps a lost client that the new coordinator names again", async () => {
  const { clock, agent_id, client_id, agent, client } = openNetwork();
  const before = new Coordinator();
  agent.connect(before);
  client.connect(before);
  await client.peer.requestTunnel(agent_id);
  await until(() => agent.peer.remotes.length === 1);
  client.loseCoordinator();
  await until(() => before.isLost(client_id));
  agent.loseCoordinator();
  const after = new Coordinator();
  const [remote] = agent.peer.remotes;
  agent.connect(after);
  await until(() => after.getNode(agent_id) !== undefined);
  client.connect(after);
  await until(() => after.counts.tunnels === 1);
  await client.peer.find(agent_id);
  clock.advance(20 * MINUTE_MS);
  expect(agent.peer.remotes).toEqual([remote as (typeof agent.peer.remotes)[number]]);
  await Promise.all([agent.peer.close(), client.peer.close()]);
});
