// Watches the health of the agent's apps: checks each app at its interval and reports changes to the server (rule DM-14).
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { AppHealth, type WorkspaceApp, WorkspaceApp_Health } from "#src/wire/gen/agent_pb.ts";
import type { Connection } from "./connection/connection.ts";
import { LatestReporter } from "./latest.ts";
import { toDurationMs } from "./times.ts";

export type AppsOptions = {
  connection: Pick<Connection, "ask">;
  clock: Clock;
  signal: AbortSignal;
  /** True while start scripts run: they may still be installing an app. */
  isStarting(): boolean;
};

/** Watches until the signal fires. Skips apps without a health check. */
export const watchApps = (apps: readonly WorkspaceApp[], options: AppsOptions): void => {
  const { connection, clock, signal } = options;
  const latest = new LatestReporter<{ id: Uint8Array; health: AppHealth }>({
    connection,
    clock,
    what: "app health",
    gap_ms: 0,
    send: (updates) => (api, abort) => api.batchUpdateAppHealths({ updates: [...updates] }, abort),
  });
  const watch = async (app: WorkspaceApp, url: string): Promise<void> => {
    const interval = Math.max(1_000, toDurationMs(app.healthcheck?.interval));
    const threshold = Math.max(1, app.healthcheck?.threshold ?? 1);
    let health: AppHealth | undefined;
    for (let failures = 0; !signal.aborted; ) {
      const isUp = await isHealthy(url, interval, options);
      if (signal.aborted) return;
      const isAwaited = health === undefined && options.isStarting();
      failures = isUp || isAwaited ? 0 : failures + 1;
      // Below the threshold, the last reported health still applies.
      const next = isUp ? AppHealth.HEALTHY : failures >= threshold ? AppHealth.UNHEALTHY : health;
      if (next !== undefined && next !== health) {
        health = next;
        latest.report(app.slug, { id: app.id, health });
      }
      await pause(clock, interval, signal);
    }
  };
  for (const app of apps) {
    const url = app.healthcheck?.url ?? "";
    if (url !== "" && app.health !== WorkspaceApp_Health.DISABLED) void watch(app, url);
  }
};

/** Returns true if the app answers within `timeout_ms` without a server error. */
const isHealthy = async (url: string, timeout_ms: number, { clock, signal }: AppsOptions): Promise<boolean> => {
  const timeout = new AbortController();
  const timer = clock.after(timeout_ms, () => timeout.abort());
  try {
    const response = await fetch(url, { redirect: "manual", signal: AbortSignal.any([timeout.signal, signal]) });
    await response.body?.cancel();
    return response.status < 500;
  } catch {
    return false;
  } finally {
    timer.cancel();
  }
};
