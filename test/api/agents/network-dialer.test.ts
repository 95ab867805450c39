// Connections that the server keeps open to agents in the private network, and their release.
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

/** A server's dialer and an agent in the same process, which is in the network; `isLate`: only after it joins. */
const network = ({ isLate = false } = {}) => {
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
      // Never answered.
      if (port === 10) return;
      connection.accept();
      void (async () => {
        for await (const chunk of connection) await connection.write(chunk);
        await connection.end();
      })().catch(() => {});
    },
  });
  const joins = (): void =>
    void agent.run(createLocalCoordinator(tailnet.coordinator, { id: agent_id, rules: createAgentRules(agent_id) }));
  if (!isLate) joins();
  return { joins, clock, tailnet, topics, agent_id, agent, dialer: new NetworkDialer({ clock, topics, tailnet }) };
};

test("[TN-11][TL-30] a tunnel is closed after a minute without connections and reopened by the next dial", async () => {
  const { clock, dialer, agent, agent_id } = network();
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

test("[TN-1] dialing a daemon that has just connected waits for its tunnel, although it is already in the private network", async () => {
  const { joins, clock, tailnet, topics, agent_id } = network({ isLate: true });
  const row = { first_connected_at: clock.now(), last_connected_at: clock.now(), disconnected_at: null };
  const dialer = new AgentsDialer({ clock, topics, tailnet, store: { get: async () => row } as never });
  const daemon = dialer.expect(agent_id);
  const dialled = dialer.dial(agent_id, 80).catch((error: Error) => error.message);
  await clock.timerIn(5_000);
  joins();
  await until(() => dialer.network.has(agent_id));
  dialer.join(agent_id, { open: () => Promise.reject(new Error("by the tunnel")) } as never, () => {});
  expect(await dialled).toBe("by the tunnel");
  daemon.gone();
});

test("[TN-11] the number of streams per agent is limited; closed ones make room", async () => {
  const { dialer, agent_id } = network();
  const dial = () => dialer.dial(agent_id, 80);
  // The first stream brings the tunnel up; the rest stay below the agent's limit.
  const streams = [await dial()];
  while (streams.length < MAX_STREAMS) streams.push(...(await Promise.all(Array.from({ length: 51 }, dial))));
  await expect(dial()).rejects.toMatchObject({ failure: "too_large" });
  streams[0]?.reset();
  await streams[0]?.closed;
  await (await dial()).end();
});

test("[TN-11] an agent that does not answer is given up after the timeout, one that refuses immediately, and a caller may cancel", async () => {
  const { clock, dialer, agent_id, agent } = network();
  await expect(dialer.dial(agent_id, 9)).rejects.toMatchObject({ failure: "refused" });
  const silent = dialer.dial(agent_id, 10).catch((error) => error);
  const leaving = new AbortController();
  const abandonedDial = dialer.dial(agent_id, 10, leaving.signal).catch((error) => error);
  await until(() => agent.remotes[0] !== undefined);
  leaving.abort();
  expect(await abandonedDial).toMatchObject({ failure: "reset" });
  clock.advance(15_000);
  expect(await silent).toMatchObject({ failure: "timeout" });
  clock.advance(60_000);
  expect(dialer.size).toBe(0);
});

test("[TN-12] no peer in the network can open a connection to the server", async () => {
  const { dialer, agent, agent_id } = network();
  const stream = await dialer.dial(agent_id, 80);
  const [server] = agent.remotes;
  const source = toAgentAddressBytes(agent_id)[0] as Uint8Array;
  for (const port of [1, 4, 80]) {
    const ends = { source, target: (stream as unknown as { ends: { source: Uint8Array } }).ends.source };
    await expect(server?.tcp.connect(ends, port)).rejects.toMatchObject({ failure: "refused" });
  }
  await dialer.close();
});
