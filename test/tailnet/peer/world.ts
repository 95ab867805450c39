// Peers in the network of a real server: an agent that accepts connections, and clients that dial it.
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

/** Joins a peer with this token. */
export const joinPeer = async (server: TestServer, path: string, token: string, role: Role) => {
  const peer = new NetworkPeer({
    ...role,
    clock: systemClock,
    random: systemRandom,
    link: (key, receive, onConnected) =>
      new RelayLink({
        url: server.url,
        key,
        clock: systemClock,
        random: systemRandom,
        receive,
        onAccepted: onConnected,
      }),
  });
  const connect = async () => {
    const connection = await connectTailnet(server, path, token);
    const running = peer.run(connection.tailnet).catch(() => {});
    return { connection, running };
  };
  let current = await connect();
  return {
    peer,
    get closed() {
      return current.connection.closed;
    },
    /** Breaks the connection to the coordinator without a disconnect message. */
    async loseCoordinator(): Promise<void> {
      await current.connection[Symbol.asyncDispose]();
      await current.running;
    },
    async reconnect(): Promise<void> {
      current = await connect();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await peer.close();
      await current.connection[Symbol.asyncDispose]();
    },
  };
};

/** Accepts connections and echoes their data, except on port 9, which has no listener. */
const acceptEcho = (connection: TcpConnection, port: number): void => {
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

export const joinAgentPeer = (server: TestServer, seeded: { agent_id: string; agent_token: string }) =>
  joinPeer(server, AGENT_PATH, seeded.agent_token, {
    role: "agent",
    addresses: toAgentAddressBytes(seeded.agent_id),
    accept: acceptEcho,
    datagram: (_from, { data }, reply) => reply(data.toReversed()),
  });

export const joinClientPeer = (server: TestServer, agent_id: string, token: string, path = clientPath(agent_id)) =>
  joinPeer(server, path, token, {
    role: "client",
    addresses: [createClientAddress()],
    accept: (connection) => connection.reset("a client offers nothing"),
  });

export const openSeededWorld = async (server: TestServer) => {
  const seeded = await seedAgent(server);
  const agent = await joinAgentPeer(server, seeded);
  const client = await joinClientPeer(server, seeded.agent_id, seeded.owner_token);
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
