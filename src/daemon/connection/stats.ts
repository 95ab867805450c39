// Tells the server what has gone over the machine's network since the last report, which connections into the workspace are open, by
// kind, and how long the way to the server and back takes (rule DM-15).
import { readFileSync } from "node:fs";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import { type Job, toMetrics } from "#src/wire/index.ts";
import type { SessionKind } from "../ssh/session-counts.ts";
import { durationMs } from "../times.ts";
import { type Connection, Stopped } from "./connection.ts";

export type Traffic = { rx_bytes: bigint; rx_packets: bigint; tx_bytes: bigint; tx_packets: bigint };

/** Who looks at terminals, TCP streams to ports of the workspace, and SSH sessions by what they are for. */
export type OpenConnections = {
  readonly terminals: number;
  readonly streams: number;
  /** What has gone over such streams since the daemon began. */
  readonly moved_bytes: number;
  readonly sessions: Readonly<Record<SessionKind, number>>;
  /** What was typed into terminals since the daemon began, in inputs. */
  readonly typed: number;
  /** SSH sessions of clients that have only kept them open since the last call. */
  readonly idleSessions: () => number;
};

export type StatsOptions = {
  connection: Pick<Connection, "ask">;
  clock: Clock;
  signal: AbortSignal;
  /** What is open now. */
  open(): OpenConnections;
  /** Milliseconds to the server and back; undefined when nobody can tell. */
  latency(): Promise<number | undefined>;
  /** The jobs that have worked in the last milliseconds. */
  jobs?: (elapsed_ms: number) => readonly Job[];
  /** The text of /proc/net/dev; undefined where none exists. */
  read?: () => string | undefined;
};

/** Below this rate streams to ports only keep themselves open, as for an editor in an unused tab. */
const MIN_BYTES_PER_SECOND = 200;

/** Reports at the interval the server asks for, until the signal fires or the server asks for none. */
export const reportStats = async (options: StatsOptions): Promise<void> => {
  const { connection, clock, signal, open, latency, jobs = () => [], read = readNetDev } = options;
  try {
    let { reportInterval } = await connection.ask((api, abort) => api.updateStats({}, abort));
    let last = trafficIn(read() ?? "");
    let looked = clock.monotonic();
    let moved = 0;
    let typed_before = 0;
    jobs(0);
    while (durationMs(reportInterval) > 0) {
      await pause(clock, durationMs(reportInterval), signal);
      if (signal.aborted) return;
      const now = trafficIn(read() ?? "");
      const { terminals, streams, moved_bytes, sessions, typed, idleSessions } = open();
      const elapsed_ms = clock.monotonic() - looked;
      looked += elapsed_ms;
      const isQuiet = (moved_bytes - moved) * 1_000 < MIN_BYTES_PER_SECOND * elapsed_ms;
      const idle = (isQuiet ? streams : 0) + (typed === typed_before ? terminals : 0) + idleSessions();
      moved = moved_bytes;
      typed_before = typed;
      const { ssh, vscode, jetbrains } = sessions;
      const stats = {
        connectionCount: BigInt(terminals + streams + ssh + vscode + jetbrains),
        connectionsByProto: toProtocols(streams),
        sessionCountSsh: BigInt(ssh),
        sessionCountVscode: BigInt(vscode),
        sessionCountJetbrains: BigInt(jetbrains),
        sessionCountReconnectingPty: BigInt(terminals),
        // As genuine agents say that they do not know.
        connectionMedianLatencyMs: (await latency()) ?? -1,
        rxBytes: grown(last.rx_bytes, now.rx_bytes),
        rxPackets: grown(last.rx_packets, now.rx_packets),
        txBytes: grown(last.tx_bytes, now.tx_bytes),
        txPackets: grown(last.tx_packets, now.tx_packets),
        metrics: toMetrics(jobs(elapsed_ms), idle),
      };
      ({ reportInterval } = await connection.ask((api, abort) => api.updateStats({ stats }, abort)));
      last = now;
    }
  } catch (error) {
    if (!(error instanceof Stopped)) log("daemon").warn("the server takes no statistics: {error}", { error });
  }
};

const toProtocols = (streams: number): Record<string, bigint> => (streams > 0 ? { TCP: BigInt(streams) } : {});

/** Everything but loopback. */
export const trafficIn = (netDev: string): Traffic => {
  const total = { rx_bytes: 0n, rx_packets: 0n, tx_bytes: 0n, tx_packets: 0n };
  for (const line of netDev.split("\n")) {
    const [, name, counts = ""] = /^\s*([^:\s]+):\s*(\d[\d\s]*)$/.exec(line) ?? [];
    if (name === undefined || name === "lo") continue;
    // Eight columns received, then eight sent; bytes and packets come first (proc(5)).
    const columns = counts.trim().split(/\s+/);
    total.rx_bytes += BigInt(columns[0] ?? 0);
    total.rx_packets += BigInt(columns[1] ?? 0);
    total.tx_bytes += BigInt(columns[8] ?? 0);
    total.tx_packets += BigInt(columns[9] ?? 0);
  }
  return total;
};

// An interface that went away takes its counts along.
const grown = (before: bigint, after: bigint): bigint => (after > before ? after - before : 0n);

const readNetDev = (): string | undefined => {
  try {
    return readFileSync("/proc/net/dev", "utf8");
  } catch {
    return undefined;
  }
};
