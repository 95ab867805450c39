// Reports statistics to the server: network traffic since the last report, open connections into the workspace by kind, and latency to the
// server (rule DM-15).
import { readFileSync } from "node:fs";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import { type Job, toMetrics } from "#src/wire/index.ts";
import type { SessionKind } from "../ssh/session-counts.ts";
import { toDurationMs } from "../times.ts";
import { type Connection, DaemonStopped } from "./connection.ts";

export type Traffic = { rx_bytes: bigint; rx_packets: bigint; tx_bytes: bigint; tx_packets: bigint };

/** Open terminals, TCP streams to ports of the workspace, and SSH sessions by purpose. */
export type OpenConnections = {
  readonly terminals: number;
  readonly streams: number;
  /** Bytes transferred over these streams since the daemon started. */
  readonly moved_bytes: number;
  readonly sessions: Readonly<Record<SessionKind, number>>;
  /** Number of inputs typed into terminals since the daemon started. */
  readonly typed: number;
  /** Returns the number of SSH sessions without activity since the last call. */
  readonly countIdleSessions: () => number;
};

export type StatsOptions = {
  connection: Pick<Connection, "ask">;
  clock: Clock;
  signal: AbortSignal;
  /** Returns the currently open connections. */
  open(): OpenConnections;
  /** Measures the round trip to the server in milliseconds; undefined if unknown. */
  latency(): Promise<number | undefined>;
  /** Returns the jobs that were active in the last `elapsed_ms`. */
  jobs?: (elapsed_ms: number) => readonly Job[];
  /** Reads /proc/net/dev; returns undefined where it does not exist. */
  read?: () => string | undefined;
};

/** Below this rate, streams to ports are considered idle: they only carry keep-alives, such as those of an editor in an unused tab. */
const MIN_BYTES_PER_SECOND = 200;

/** Reports at the interval that the server requests, until the signal fires or the interval is zero. */
export const reportStats = async (options: StatsOptions): Promise<void> => {
  const { connection, clock, signal, open, latency, jobs = () => [], read = readNetDev } = options;
  try {
    let { reportInterval } = await connection.ask((api, abort) => api.updateStats({}, abort));
    let last = parseTraffic(read() ?? "");
    let measuredAt = clock.monotonic();
    let movedBefore = 0;
    let typedBefore = 0;
    jobs(0);
    while (toDurationMs(reportInterval) > 0) {
      await pause(clock, toDurationMs(reportInterval), signal);
      if (signal.aborted) return;
      const now = parseTraffic(read() ?? "");
      const { terminals, streams, moved_bytes, sessions, typed, countIdleSessions } = open();
      const elapsed_ms = clock.monotonic() - measuredAt;
      measuredAt += elapsed_ms;
      const isQuiet = (moved_bytes - movedBefore) * 1_000 < MIN_BYTES_PER_SECOND * elapsed_ms;
      const idle = (isQuiet ? streams : 0) + (typed === typedBefore ? terminals : 0) + countIdleSessions();
      movedBefore = moved_bytes;
      typedBefore = typed;
      const { ssh, vscode, jetbrains } = sessions;
      const stats = {
        connectionCount: BigInt(terminals + streams + ssh + vscode + jetbrains),
        connectionsByProto: toProtocols(streams),
        sessionCountSsh: BigInt(ssh),
        sessionCountVscode: BigInt(vscode),
        sessionCountJetbrains: BigInt(jetbrains),
        sessionCountReconnectingPty: BigInt(terminals),
        // -1 reports an unknown latency.
        connectionMedianLatencyMs: (await latency()) ?? -1,
        rxBytes: increaseSince(last.rx_bytes, now.rx_bytes),
        rxPackets: increaseSince(last.rx_packets, now.rx_packets),
        txBytes: increaseSince(last.tx_bytes, now.tx_bytes),
        txPackets: increaseSince(last.tx_packets, now.tx_packets),
        metrics: toMetrics(jobs(elapsed_ms), idle),
      };
      ({ reportInterval } = await connection.ask((api, abort) => api.updateStats({ stats }, abort)));
      last = now;
    }
  } catch (error) {
    if (!(error instanceof DaemonStopped))
      log("daemon").warn("the server does not accept statistics: {error}", { error });
  }
};

const toProtocols = (streams: number): Record<string, bigint> => (streams > 0 ? { TCP: BigInt(streams) } : {});

/** Sums all interfaces except loopback. */
export const parseTraffic = (netDev: string): Traffic => {
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

// The counters of a removed interface disappear with it.
const increaseSince = (before: bigint, after: bigint): bigint => (after > before ? after - before : 0n);

const readNetDev = (): string | undefined => {
  try {
    return readFileSync("/proc/net/dev", "utf8");
  } catch {
    return undefined;
  }
};
