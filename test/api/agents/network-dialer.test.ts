// Connections of the server to agents in the private network, and how they are closed when unused.
import { expect, test } from "bun:test";
import type { Events } from "#actors/runtime/events.ts";
import { uuid } from "#base/ids.ts";
import { Topics } from "#base/topics.ts";
import { AgentsDialer } from "#domain/agents/dialer.ts";
import { MAX_STREAMS, NetworkDialer } from "#domain/agents/network-dialer.ts";
import { Coordinator } from "#src/tailnet/coordinator.ts";
import { createLocalCoordinator } from "#src/tailnet/peer/local-coordinator.ts";
import { LocalLink } from "#src/tailnet/peer/local-link.ts";
import { NetworkPeer } from "#src/tailnet/peer/network-peer.ts";
import { toAgentAddressBytes } from "#src/tailnet/peer/node.ts";
import { createAgentRules } from "#src/tailnet/peer-rules.ts";
import { Relay } from "#src/tailnet/relay.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

/** Creates a server's dialer and an agent in the same process. The agent joins the network, unless `isLate` is set. */
const createNetwork = ({ isLate = false } = {}) => {
  const clock = new ManualClock();
  const tailnet = { coordinator: new Coordinator(), relay: new Relay(clock) };
  const topics = new Topics<Events>();
  const agent_id = uuid();
  const agent = new NetworkPeer({
    clock,
    random: () => 0.5,
    role: "agent",
    addresses: toAgentAddressBytes(agent_id),
    link: (key, receive) => new LocalLink({ relay: tailnet.relay, key, receive }),
    accept: (connection, port) => {
      if (port === 9) return connection.reset("nothing listens");
      // The agent never answers on this port.
      if (port === 10) return;
      connection.accept();
      void (async () => {
        for await (const chunk of connection) await connection.write(chunk);
        await connection.end();
      })().catch(() => {});
    },
  });
  const joinNetwork = (): void =>
    void agent.run(createLocalCoordinator(tailnet.coordinator, { id: agent_id, rules: createAgentRules(agent_id) }));
  if (!isLate) joinNetwork();
  return {
    joinNetwork,
    clock,
    tailnet,
    topics,
    agent_id,
    agent,
    dialer: new NetworkDialer({ clock, topics, tailnet }),
  };
};

test("[TN-11][TL-30] the server closes a tunnel after a minute without connections, and the next dial reopens it", async () => {
  const { clock, dialer, agent, agent_id } = createNetwork();
  const first = await dialer.dial(agent_id, 80);
  clock.advance(10 * 60_000);
  await first.write(Uint8Array.of(1));
  expect(await first.read()).toEqual(Uint8Array.of(1));
  await first.end();
  expect(await first.read()).toBeUndefined();
  await first.closed;
  clock.advance(59_000);
  expect(dialer.size).toBe(1);
  clock.advance(2_000);
  expect(dialer.size).toBe(0);
  await until(() => agent.remotes.length === 0);
  const second = await dialer.dial(agent_id, 80);
  expect(agent.remotes).toHaveLength(1);
  await dialer.close();
  expect(await second.closed).toMatchObject({ failure: "closed" });
});

test("[TN-1] a dial to a daemon that has just connected waits for its tunnel, even if the daemon is in the private network", async () => {
  const { joinNetwork, clock, tailnet, topics, agent_id } = createNetwork({ isLate: true });
  const row = { first_connected_at: clock.now(), last_connected_at: clock.now(), disconnected_at: null };
  const dialer = new AgentsDialer({ clock, topics, tailnet, store: { get: async () => row } as never });
  const daemon = dialer.expect(agent_id);
  const dialError = dialer.dial(agent_id, 80).catch((error: Error) => error.message);
  await clock.timerIn(5_000);
  joinNetwork();
  await until(() => dialer.network.has(agent_id));
  dialer.join(agent_id, { open: () => Promise.reject(new Error("by the tunnel")) } as never, () => {});
  expect(await dialError).toBe("by the tunnel");
  daemon.gone();
});

test("[TN-11] the number of streams per agent is limited; a closed stream makes room", async () => {
  const { dialer, agent_id } = createNetwork();
  const dial = () => dialer.dial(agent_id, 80);
  // The first stream opens the tunnel; the following batches stay below the agent's limit of concurrent dials.
  const streams = [await dial()];
  while (streams.length < MAX_STREAMS) streams.push(...(await Promise.all(Array.from({ length: 51 }, dial))));
  await expect(dial()).rejects.toMatchObject({ failure: "too_large" });
  streams[0]?.reset();
  await streams[0]?.closed;
  await (await dial()).end();
});

test("[TN-11] a dial fails immediately if the agent refuses, after the timeout if it does not answer, or if the caller cancels", async () => {
  const { clock, dialer, agent_id, agent } = createNetwork();
  await expect(dialer.dial(agent_id, 9)).rejects.toMatchObject({ failure: "refused" });
  const unansweredDial = dialer.dial(agent_id, 10).catch((error) => error);
  const abort = new AbortController();
  const canceledDial = dialer.dial(agent_id, 10, abort.signal).catch((error) => error);
  await until(() => agent.remotes[0] !== undefined);
  abort.abort();
  expect(await canceledDial).toMatchObject({ failure: "reset" });
  clock.advance(15_000);
  expect(await unansweredDial).toMatchObject({ failure: "timeout" });
  clock.advance(60_000);
  expect(dialer.size).toBe(0);
});

test("[TN-12] the server refuses connections from peers in the network", async () => {
  const { dialer, agent, agent_id } = createNetwork();
  const stream = await dialer.dial(agent_id, 80);
  const [server] = agent.remotes;
  const source = toAgentAddressBytes(agent_id)[0] as Uint8Array;
  for (const port of [1, 4, 80]) {
    const addresses = { source, target: (stream as unknown as { ends: { source: Uint8Array } }).ends.source };
    await expect(server?.tcp.connect(addresses, port)).rejects.toMatchObject({ failure: "refused" });
  }
  await dialer.close();
});
