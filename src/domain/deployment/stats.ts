// The deployment's current load: workspaces by state, and the statistics of connected agents (facts/platform 9.1).
import { toRfc3339 } from "#base/clock.ts";
import { type AgentFigures, listAgentFigures, listStatusCounts } from "#db/workspaces/deployment-stats.ts";
import type { DeploymentStats } from "#schema/deployment/stats.ts";
import type { DomainContext } from "../context.ts";

/** Agents report every five minutes, so older data is stale. */
const WINDOW_MS = 15 * 60_000;
const REFRESH_INTERVAL_MS = 30_000;

type Deps = Pick<DomainContext, "store" | "clock">;

export const loadDeploymentStats = async ({ store, clock }: Deps): Promise<DeploymentStats> => {
  const now = clock.now();
  const counts = new Map((await store.all(listStatusCounts())).map(({ status, count }) => [status, count]));
  const agents = await store.all(listAgentFigures({ from: now - WINDOW_MS }));
  const count = (...statuses: string[]): number => statuses.reduce((sum, one) => sum + (counts.get(one) ?? 0), 0);
  const latencies = agents
    .filter(({ connection_count }) => connection_count > 0)
    .map((one) => one.connection_median_latency_ms)
    .sort((a, b) => a - b);
  const countSessions = (name: string): number => agents.reduce((sum, one) => sum + (one.session_counts[name] ?? 0), 0);
  const sumBytes = (read: (one: AgentFigures) => number): number => agents.reduce((sum, one) => sum + read(one), 0);
  return {
    aggregated_from: toRfc3339(now - WINDOW_MS),
    collected_at: toRfc3339(now),
    next_update_at: toRfc3339(now + REFRESH_INTERVAL_MS),
    workspaces: {
      pending: count("pending"),
      building: count("starting", "stopping", "deleting", "canceling"),
      running: count("running"),
      failed: count("failed"),
      stopped: count("stopped", "canceled"),
      connection_latency_ms: { P50: percentile(latencies, 0.5), P95: percentile(latencies, 0.95) },
      rx_bytes: sumBytes((one) => one.rx_bytes),
      tx_bytes: sumBytes((one) => one.tx_bytes),
    },
    session_count: {
      vscode: countSessions("vscode"),
      jetbrains: countSessions("jetbrains"),
      ssh: countSessions("ssh"),
      reconnecting_pty: countSessions("reconnecting_pty"),
    },
  };
};

/** -1 when there is no data, as in upstream's API. */
const percentile = (sorted: readonly number[], part: number): number =>
  sorted.length === 0 ? -1 : (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? -1);
