// Peers of a real server's network: an agent that accepts, and clients that dial it.
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { NetworkPeer, type NetworkPeerOptions } from "#src/tailnet/peer/network-peer.ts";
import { createClientAddress, toAgentAddressBytes } from "#src/tailnet/peer/node.ts";
import { RelayLink } from "#src/tailnet/peer/relay-link.ts";
import type { TcpConnection } from "#src/tailnet/tcp/connection.ts";
import { seedAgent } from "#test/support/seed.ts";
import type { TestServer } from "#test/support/server.ts";
import { connectTailnet } from "../peers.ts";

const AGENT_PATH = "/api/v2/workspaceagents/me/rpc?version=2.10&role=tailnet";
export const clientPath = (agent_id: string): string => `/api/v2/workspaceagents/${agent_id}/coordinate?version=2.0`;

type Role = Pick<NetworkPeerOptions, "role" | "addresses" | "accept" | "datagram">;

/** A peer that has joined with this token; `again` reconnects it. */
export const joinPeer = async (server: TestServer, path: string, token: string, role: Role) => {
  const peer = new NetworkPeer({
    ...role,
    clock: systemClock,
    random: systemRandom,
    link: (key, receive, back) =>
      new RelayLink({ url: server.url, key, clock: systemClock, random: systemRandom, receive, back }),
  });
  const connect = async () => {
    const connection = await connectTailnet(server, path, token);
    const running = peer.run(connection.tailnet).catch(() => {});
    return { connection, running };
  };
  let live = await connect();
  return {
    peer,
    get closed() {
      return live.connection.closed;
    },
    /** The connection to the coordinator breaks without a close. */
    async lose(): Promise<void> {
      await live.connection[Symbol.asyncDispose]();
      await live.running;
    },
    async again(): Promise<void> {
      live = await connect();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await peer.close();
      await live.connection[Symbol.asyncDispose]();
    },
  };
};

/** Echoes on every port but 9, where nothing listens. */
const echo = (connection: TcpConnection, port: number): void => {
  if (port === 9) {
    connection.reset("nothing listens");
    return;
  }
  connection.accept();
  void (async () => {
    for await (const chunk of connection) await connection.write(chunk);
    await connection.end();
  })().catch(() => {});
};

export const agentPeer = (server: TestServer, seeded: { agent_id: string; agent_token: string }) =>
  joinPeer(server, AGENT_PATH, seeded.agent_token, {
    role: "agent",
    addresses: toAgentAddressBytes(seeded.agent_id),
    accept: echo,
    datagram: (_from, { data }, answer) => answer(data.toReversed()),
  });

export const clientPeer = (server: TestServer, agent_id: string, token: string, path = clientPath(agent_id)) =>
  joinPeer(server, path, token, {
    role: "client",
    addresses: [createClientAddress()],
    accept: (connection) => connection.reset("a client offers nothing"),
  });

export const openSeededWorld = async (server: TestServer) => {
  const seeded = await seedAgent(server);
  const agent = await agentPeer(server, seeded);
  const client = await clientPeer(server, seeded.agent_id, seeded.owner_token);
  return {
    seeded,
    agent,
    client,
    async [Symbol.asyncDispose](): Promise<void> {
      await client[Symbol.asyncDispose]();
      await agent[Symbol.asyncDispose]();
    },
  };
};
