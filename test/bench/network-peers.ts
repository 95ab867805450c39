// Many peers of the private network in one process, for the row `network-crowd`: `network-peers.ts agents FILE` or `clients FILE`, where
// the file is a Crowd as JSON. Agents echo data and serve speed tests. Each client has a tunnel and types over it as fast as a person in an
// editor; some clients download as fast as possible. Prints a line once all are connected. Clients start when they receive a line of input,
// and print their results at the end.
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { join } from "#src/cli/client/network/join.ts";
import { Client } from "#src/client.ts";
import { serveSpeedTest } from "#src/daemon/network/speed-test.ts";
import { NetworkPeer } from "#src/tailnet/peer/network-peer.ts";
import { toAgentAddressBytes } from "#src/tailnet/peer/node.ts";
import { RelayLink } from "#src/tailnet/peer/relay-link.ts";
import type { TcpConnection } from "#src/tailnet/tcp/connection.ts";
import { AGENT_PORT } from "#src/wire/agent-dialer.ts";
import { createTailnetClient } from "#src/wire/tailnet-api.ts";
import { createWebSocketStream } from "#src/wire/websocket.ts";
import { YamuxSession } from "#src/wire/yamux.ts";

export type Crowd = {
  url: string;
  admin_token: string;
  agents: readonly { id: string; token: string }[];
  clients: number;
  /** Number of downloading clients; the others type. */
  bulk: number;
  seconds: number;
};

/** The clients' results: milliseconds from a key to its echo, and megabytes per second of all downloads in total. */
export type CrowdSeen = { keys: number; echo_p50: number; echo_p99: number; bulk_mb_per_s: number; failed: number };

const ECHO_PORT = 7;
const KEY_GAP_MS = { min: 80, max: 300 } as const;
/** Approximate size of what an editor sends for one key. */
const KEY_BYTES = 96;
const BATCH_SIZE = 8;

const clock = systemClock;

const echo = async (connection: TcpConnection): Promise<void> => {
  for await (const chunk of connection) await connection.write(chunk);
  await connection.end();
};

const startAgent = async ({ url }: Crowd, { id, token }: Crowd["agents"][number]): Promise<void> => {
  const target = new URL("/api/v2/workspaceagents/me/rpc?version=2.10&role=tailnet", url);
  target.protocol = "ws:";
  const socket = new WebSocket(target, { headers: { "Service-Session-Token": token } } as never);
  const session = new YamuxSession(await createWebSocketStream(socket, clock), { role: "client", clock });
  const peer = new NetworkPeer({
    clock,
    random: systemRandom,
    role: "agent",
    addresses: toAgentAddressBytes(id),
    link: (key, receive, onAccepted) =>
      new RelayLink({ url: new URL(url), key, clock, random: systemRandom, receive, onAccepted }),
    accept: (connection, port) => {
      connection.accept();
      void (port === AGENT_PORT.speed_test ? serveSpeedTest(connection, clock) : echo(connection)).catch(() => {});
    },
  });
  void peer.run(createTailnetClient(session));
};

type Dial = (port: number) => Promise<TcpConnection>;

const startClient = async (crowd: Crowd, number: number): Promise<Dial> => {
  const agent = crowd.agents[number % crowd.agents.length] as Crowd["agents"][number];
  const { peer } = join(new Client(crowd.url, crowd.admin_token), agent.id, { clock });
  // The tunnel exists once data has passed through it.
  const connection = await peer.dial(agent.id, ECHO_PORT);
  await connection.end();
  return (port) => peer.dial(agent.id, port);
};

const typeKeys = async (dial: Dial, endAt: number, times: number[]): Promise<void> => {
  const connection = await dial(ECHO_PORT);
  while (performance.now() < endAt) {
    await Bun.sleep(KEY_GAP_MS.min + Math.random() * (KEY_GAP_MS.max - KEY_GAP_MS.min));
    const startedAt = performance.now();
    await connection.write(new Uint8Array(KEY_BYTES));
    for (let receivedBytes = 0; receivedBytes < KEY_BYTES; ) {
      const chunk = await connection.read();
      if (!chunk) throw new Error("the echo has ended");
      receivedBytes += chunk.byteLength;
    }
    times.push(performance.now() - startedAt);
  }
  await connection.end();
};

const download = async (dial: Dial, seconds: number): Promise<number> => {
  const connection = await dial(AGENT_PORT.speed_test);
  await connection.write(new TextEncoder().encode(`{"version":2,"time":${seconds * 1e9},"direction":0}\n`));
  let bytes = 0;
  for await (const chunk of connection) bytes += chunk.byteLength;
  return bytes;
};

const runClients = async ({ seconds, bulk }: Crowd, dials: readonly Dial[]): Promise<CrowdSeen> => {
  const times: number[] = [];
  const endAt = performance.now() + seconds * 1_000;
  const typing = dials.slice(bulk).map((dial) => typeKeys(dial, endAt, times));
  const downloading = dials.slice(0, bulk).map((dial) => download(dial, seconds));
  const results = await Promise.allSettled([...typing, ...downloading]);
  const bytes = results.reduce((sum, result) => sum + (result.status === "fulfilled" ? (result.value ?? 0) : 0), 0);
  times.sort((a, b) => a - b);
  const percentile = (share: number): number => times[Math.floor(times.length * share)] ?? Number.NaN;
  const failed = results.filter(({ status }) => status === "rejected").length;
  return {
    keys: times.length,
    echo_p50: percentile(0.5),
    echo_p99: percentile(0.99),
    bulk_mb_per_s: bytes / 1e6 / seconds,
    failed,
  };
};

const mapInBatches = async <T, R>(
  list: readonly T[],
  startPeer: (item: T, number: number) => Promise<R>,
): Promise<R[]> => {
  const results: R[] = [];
  for (let start = 0; start < list.length; start += BATCH_SIZE)
    results.push(
      ...(await Promise.all(list.slice(start, start + BATCH_SIZE).map((one, i) => startPeer(one, start + i)))),
    );
  return results;
};

const printLine = (line: string): void => void process.stdout.write(`${line}\n`);

if (import.meta.main) {
  const [role = "", file = ""] = process.argv.slice(2);
  const crowd = (await Bun.file(file).json()) as Crowd;
  if (role === "agents") {
    await mapInBatches(crowd.agents, (agent) => startAgent(crowd, agent));
    printLine("ready");
    await Bun.stdin.text();
  } else {
    const numbers = Array.from({ length: crowd.clients }, (_, i) => i);
    const dials = await mapInBatches(numbers, (number) => startClient(crowd, number));
    printLine("ready");
    for await (const _ of Bun.stdin.stream()) break;
    printLine(JSON.stringify(await runClients(crowd, dials)));
  }
  process.exit(0);
}
