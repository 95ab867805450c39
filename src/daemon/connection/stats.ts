// Tells the server what has gone over the machine's network since the last report. Only what is known is told: connections are not
// counted here, so they are zero (rule DM-15).
import { readFileSync } from "node:fs";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { pause } from "../pause.ts";
import { durationMs } from "../times.ts";
import { type Connection, Stopped } from "./connection.ts";

export type Traffic = { rx_bytes: bigint; rx_packets: bigint; tx_bytes: bigint; tx_packets: bigint };

export type StatsOptions = {
  connection: Pick<Connection, "ask">;
  clock: Clock;
  signal: AbortSignal;
  /** The text of /proc/net/dev; undefined where there is none. */
  read?: () => string | undefined;
};

/** Reports at the interval the server asks for, until the signal fires or the server asks for none. */
export const reportStats = async ({ connection, clock, signal, read = readNetDev }: StatsOptions): Promise<void> => {
  try {
    let { reportInterval } = await connection.ask((api, abort) => api.updateStats({}, abort));
    let last = trafficIn(read() ?? "");
    while (durationMs(reportInterval) > 0) {
      await pause(clock, durationMs(reportInterval), signal);
      if (signal.aborted) return;
      const now = trafficIn(read() ?? "");
      const stats = {
        rxBytes: grown(last.rx_bytes, now.rx_bytes),
        rxPackets: grown(last.rx_packets, now.rx_packets),
        txBytes: grown(last.tx_bytes, now.tx_bytes),
        txPackets: grown(last.tx_packets, now.tx_packets),
      };
      ({ reportInterval } = await connection.ask((api, abort) => api.updateStats({ stats }, abort)));
      last = now;
    }
  } catch (error) {
    if (!(error instanceof Stopped)) log("daemon").warn("the server takes no statistics: {error}", { error });
  }
};

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
