// The private network rows: how fast a peer like the command line reaches a workspace's daemon over the relay, in bytes, in CPU time of
// each program, and in the time from a key to its echo, alone and during a bulk download.
import { systemClock } from "#base/clock.ts";
import { join } from "#src/cli/client/network/join.ts";
import { Client } from "#src/client.ts";
import type { TcpConnection } from "#src/tailnet/tcp/connection.ts";
import { AGENT_PORT } from "#src/wire/agent-dialer.ts";
import { processorMs } from "../machine.ts";
import { type Figures, productFigure, type Row, range } from "../row.ts";
import { startReachableAgent } from "./rows-tunnel.ts";

const KEYS = 500;
/** Duration of the download during which keys are echoed. */
const DOWNLOAD_SECONDS = 5;
const BLOCK = new Uint8Array(64 * 1024);

/** Starts one of our clients. Without large segments, its segments are as small as those of third-party clients. */
const startNetwork = (reach: Awaited<ReturnType<typeof startReachableAgent>>, hasLargeSegments: boolean) => {
  const { product, daemon } = reach;
  const agent_id = reach.path.split("/").at(-1) as string;
  const client = new Client(product.url, product.adminToken);
  const joined = join(client, agent_id, { clock: systemClock, hasLargeSegments });
  return {
    dial: (port: number) => joined.peer.dial(agent_id, port),
    pids: { server: product.pid, daemon: daemon.pid, client: process.pid },
    [Symbol.asyncDispose]: () => joined[Symbol.asyncDispose](),
  };
};

type Network = ReturnType<typeof startNetwork>;

const speedTest = async (network: Network, direction: 0 | 1, seconds: number): Promise<TcpConnection> => {
  const connection = await network.dial(AGENT_PORT.speed_test);
  await connection.write(new TextEncoder().encode(`{"version":2,"time":${seconds * 1e9},"direction":${direction}}\n`));
  await connection.read();
  return connection;
};

/** Transfers data until the test is over. Returns the number of bytes. */
const transfer = async (network: Network, direction: 0 | 1, seconds: number): Promise<number> => {
  const connection = await speedTest(network, direction, seconds);
  let bytes = 0;
  if (direction === 1) {
    for (const end = performance.now() + seconds * 1000; performance.now() < end; bytes += BLOCK.byteLength) {
      await connection.write(BLOCK);
    }
    await connection.end();
  }
  for await (const chunk of connection) bytes += chunk.byteLength;
  return bytes;
};

const measureTransfer = async (network: Network, direction: 0 | 1, seconds: number, name: string): Promise<Figures> => {
  await transfer(network, direction, 0.5);
  const pids = Object.entries(network.pids);
  const before = pids.map(([, pid]) => processorMs(pid));
  const startedAt = performance.now();
  const megabytes = (await transfer(network, direction, seconds)) / 1e6;
  const elapsedSeconds = (performance.now() - startedAt) / 1000;
  const cpu = pids.map(
    ([program, pid], i) => [`${name}_${program}`, (processorMs(pid) - (before[i] as number)) / megabytes] as const,
  );
  return { [`${name}_mb_per_s`]: megabytes / elapsedSeconds, ...Object.fromEntries(cpu) };
};

/** Measures the milliseconds from a byte to a port of the workspace until it is echoed. */
const measureEchoes = async (network: Network, port: number, name: string): Promise<Figures> => {
  const connection = await network.dial(port);
  const times: number[] = [];
  for (const i of range(KEYS)) {
    const startedAt = performance.now();
    await connection.write(Uint8Array.of(i));
    await connection.read();
    times.push(performance.now() - startedAt);
  }
  await connection.end();
  times.sort((a, b) => a - b);
  const percentile = (share: number): number => times[Math.floor(times.length * share)] ?? 0;
  return { [`${name}_p50`]: percentile(0.5), [`${name}_p99`]: percentile(0.99) };
};

const atMost = (what: string, figure: string, bound: number, unit: "ms") => ({
  what,
  target: `<= ${bound} ms`,
  value: productFigure(figure),
  bound,
  unit,
  better: "lower" as const,
});
const atLeast = (what: string, figure: string, bound: number) => ({
  what,
  target: `>= ${bound}`,
  value: productFigure(figure),
  bound,
  unit: "count" as const,
  better: "higher" as const,
});

export const network: Row = {
  name: "network",
  title: "Download, upload and typing by a peer, through relay and daemon; without a baseline",
  sides: ["product"],
  async measure(bench) {
    await using reach = await startReachableAgent(bench);
    await using largeSegments = startNetwork(reach, true);
    using echo = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: (socket, data) => void socket.write(data) },
    });
    const alone = await measureEchoes(largeSegments, echo.port, "echo");
    const downloaded = await measureTransfer(largeSegments, 0, bench.seconds, "down");
    const uploaded = await measureTransfer(largeSegments, 1, bench.seconds, "up");
    const bulk = transfer(largeSegments, 0, DOWNLOAD_SECONDS);
    const loaded = await measureEchoes(largeSegments, echo.port, "beside");
    const beside_mb_per_s = (await bulk) / 1e6 / DOWNLOAD_SECONDS;
    await using smallSegments = startNetwork(reach, false);
    const smallSegmentDown = await measureTransfer(smallSegments, 0, bench.seconds, "other_down");
    const smallSegmentUp = await measureTransfer(smallSegments, 1, bench.seconds, "other_up");
    return { ...alone, ...downloaded, ...uploaded, ...loaded, beside_mb_per_s, ...smallSegmentDown, ...smallSegmentUp };
  },
  figures: {
    down_mb_per_s: "download MB/s",
    down_daemon: "daemon's processor ms per MB down",
    down_server: "server's processor ms per MB down",
    down_client: "client's processor ms per MB down",
    up_mb_per_s: "upload MB/s",
    up_daemon: "daemon's processor ms per MB up",
    up_server: "server's processor ms per MB up",
    up_client: "client's processor ms per MB up",
    other_down_mb_per_s: "download MB/s in segments of 1,220 bytes",
    other_down_daemon: "daemon's processor ms per MB downloaded, small segments",
    other_down_server: "server's processor ms per MB downloaded, small segments",
    other_down_client: "client's processor ms per MB downloaded, small segments",
    other_up_mb_per_s: "upload MB/s in segments of 1,220 bytes",
    other_up_daemon: "daemon's processor ms per MB uploaded, small segments",
    other_up_server: "server's processor ms per MB uploaded, small segments",
    other_up_client: "client's processor ms per MB uploaded, small segments",
    echo_p50: "echo p50 ms",
    echo_p99: "echo p99 ms",
    beside_p50: "echo during a download p50 ms",
    beside_p99: "echo during a download p99 ms",
    beside_mb_per_s: "MB/s of the download during which keys are echoed",
  },
  verdicts: [
    atLeast("download MB/s", "down_mb_per_s", 60),
    atLeast("upload MB/s", "up_mb_per_s", 40),
    atMost("daemon's processor per MB down", "down_daemon", 12, "ms"),
    atMost("daemon's processor per MB up", "up_daemon", 18, "ms"),
    atLeast("download MB/s of others' clients (segments of 1,220 bytes)", "other_down_mb_per_s", 60),
    atLeast("upload MB/s of others' clients", "other_up_mb_per_s", 40),
    atMost("daemon's processor per MB down to others' clients", "other_down_daemon", 12, "ms"),
    atMost("daemon's processor per MB up from others' clients", "other_up_daemon", 18, "ms"),
    atMost("echo p50", "echo_p50", 2, "ms"),
    atMost("echo p99", "echo_p99", 8, "ms"),
    atMost("echo during a download p50", "beside_p50", 8, "ms"),
    atMost("echo during a download p99", "beside_p99", 25, "ms"),
  ],
};
