// Implements the Agent service: translates protocol messages into messages to the agent's actor. Methods that are missing here, such as
// boundary logs, are answered with "unimplemented" (code 12), which upstream agents accept.
import type { ResourcesReport } from "#actors/agent/resources.ts";
import { invalidField } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { reportAppStatus } from "#domain/agents/app-status.ts";
import { findAgentById, isLatest } from "#domain/agents/find.ts";
import { correctTime, noteReported } from "#domain/connections/agent-connections.ts";
import { readAppearance } from "#domain/deployment/appearance.ts";
import { LIFECYCLE_STATES, SCRIPT_STAGES, SCRIPT_STATUSES, SUBSYSTEMS } from "#schema/agents/agent.ts";
import type { Banner } from "#schema/deployment/appearance.ts";
import { LOG_LEVELS } from "#schema/log-level.ts";
import { toLine } from "#schema/text.ts";
import { APP_HEALTHS, APP_STATES, STATUS_MESSAGE } from "#schema/workspaces/app.ts";
import type {
  BatchCreateLogsRequest,
  PushResourcesMonitoringUsageRequest_Datapoint,
  Stats,
} from "#src/wire/gen/agent_pb.ts";
import {
  type AgentHandlers,
  readIdleStreams,
  readJobs,
  sanitizeCommand,
  toCount,
  toDuration,
  toMs,
} from "#src/wire/index.ts";
import type { ApiContext } from "../../context.ts";
import { contextService } from "./context.ts";
import { loadManifest } from "./manifest.ts";
import { subAgentService } from "./sub-agents.ts";
import { toId, toWord } from "./translate.ts";

/** How often an agent reports statistics. Never 0, which would stop its reports permanently (facts/wire 1.5). */
const STATS_SECONDS = 300;
/** Resource monitoring settings; upstream agents require them. */
const MONITORING = { numDatapoints: 20, collectionIntervalSeconds: 10 };
/** Maximum lines in one message to the actor. Larger batches without a name are stored in pieces. */
const MAX_LINES_PER_MESSAGE = 1000;

/** Ordered by the protocol's enum values. */
const REPORTED_TYPES = ["ssh", "vscode", "jetbrains", "reconnecting_pty"] as const;

const toBanner = ({ enabled, message, background_color }: Banner) => ({
  enabled,
  message,
  backgroundColor: background_color,
});

export const agentService = (
  ctx: ApiContext,
  {
    agent_id,
    api_version,
    actsForAgent,
    server,
  }: { agent_id: string; api_version: string; actsForAgent: boolean; server: URL },
): Partial<AgentHandlers> => ({
  getManifest: () => loadManifest(ctx, agent_id, server),
  ...subAgentService(ctx, { agent_id, actsForAgent }),
  ...contextService(ctx, agent_id),
  async getServiceBanner() {
    const { service_banner } = await readAppearance(ctx);
    return toBanner(service_banner);
  },
  async getAnnouncementBanners() {
    const { announcement_banners } = await readAppearance(ctx);
    return { announcementBanners: announcement_banners.map(toBanner) };
  },

  async updateStats({ stats }) {
    if (stats) {
      const report = toStats(stats);
      await ctx.agents.ask(agent_id, "reportStats", report);
      await noteUse(ctx, agent_id, report, stats.metrics);
    }
    return { reportInterval: toDuration(STATS_SECONDS) };
  },

  async updateLifecycle({ lifecycle }) {
    if (!lifecycle) throw invalidField("lifecycle", "is missing");
    const state = toWord(LIFECYCLE_STATES, lifecycle.state, 1, "state");
    const changed_at = toMs(lifecycle.changedAt);
    await ctx.agents.ask(agent_id, "reportLifecycle", { state, changed_at });
    // A new process knows nothing about connections held by the previous one.
    if (state === "starting") await ctx.connections.endEarlier(agent_id, correctTime(changed_at, ctx.clock.now()));
    return lifecycle;
  },

  async updateStartup({ startup }) {
    if (!startup) throw invalidField("startup", "is missing");
    await ctx.agents.ask(agent_id, "reportStartup", {
      version: startup.version,
      expanded_directory: startup.expandedDirectory,
      subsystems: startup.subsystems.map((subsystem) => toWord(SUBSYSTEMS, subsystem, 1, "subsystems")),
      api_version,
    });
    return startup;
  },

  async batchUpdateAppHealths({ updates }) {
    const healths = updates.map(({ id, health }) => ({
      id: toId(id, "id"),
      health: toWord(APP_HEALTHS, health, 1, "health"),
    }));
    await ctx.agents.ask(agent_id, "reportAppHealth", { updates: healths });
    return {};
  },

  async updateAppStatus({ slug, state, message, uri }) {
    if ([...message].length > STATUS_MESSAGE) throw invalidField("message", "must have at most 160 characters");
    if (uri.length > 4096) throw invalidField("uri", "is too long");
    const report = {
      app_slug: slug,
      state: toWord(APP_STATES, state, 0, "state"),
      message,
      uri,
      icon: "",
      needs_user_attention: false,
    };
    const agent = await findAgentById(ctx.store, agent_id);
    if (agent) await reportAppStatus(ctx, { agent_id, workspace_id: agent.workspace_id }, report);
    return {};
  },

  async batchUpdateMetadata({ metadata }) {
    const results = metadata.map(({ key, result }) => ({
      key,
      value: result?.value ?? "",
      error: result?.error ?? "",
    }));
    await ctx.agents.ask(agent_id, "reportMetadata", { results });
    return {};
  },

  async batchCreateLogs(request) {
    for (const batch of splitLogs(request)) {
      const outcome = await ctx.agents.ask(agent_id, "appendLogs", batch);
      if (outcome === "overflow") return { logLimitExceeded: true };
    }
    return { logLimitExceeded: false };
  },

  async scriptCompleted({ timing }) {
    const started_at = toMs(timing?.start);
    const ended_at = toMs(timing?.end);
    if (!timing || started_at === undefined || ended_at === undefined) throw invalidField("timing", "is incomplete");
    await ctx.agents.ask(agent_id, "reportScript", {
      script_id: toId(timing.scriptId, "script_id"),
      started_at,
      ended_at,
      exit_code: timing.exitCode,
      stage: toWord(SCRIPT_STAGES, timing.stage, 0, "stage"),
      status: toWord(SCRIPT_STATUSES, timing.status, 0, "status"),
    });
    return {};
  },

  // Slipway's daemon reports its resources regardless of this response; other agents are not asked to report theirs.
  getResourcesMonitoringConfiguration: () => ({ config: MONITORING, volumes: [] }),
  async pushResourcesMonitoringUsage({ datapoints }) {
    const newest = datapoints.at(-1);
    if (newest) await ctx.agents.ask(agent_id, "reportResources", toResources(newest, ctx.clock.now()));
    return {};
  },

  async reportConnection({ connection }) {
    if (!connection) throw invalidField("connection", "is missing");
    await noteReported(ctx, agent_id, {
      connection_id: toId(connection.id, "id"),
      isOver: toWord(["connect", "disconnect"], connection.action, 1, "action") === "disconnect",
      type: connection.type === 0 ? undefined : toWord(REPORTED_TYPES, connection.type, 1, "type"),
      app_name: connection.appName,
      at: toMs(connection.timestamp),
      ip: connection.ip,
      status_code: connection.statusCode,
      reason: connection.reason ?? "",
    });
    return {};
  },
});

function* splitLogs({ logSourceId, logs, batchId }: BatchCreateLogsRequest) {
  const log_source_id = logSourceId.length === 0 ? undefined : toId(logSourceId, "log_source_id");
  const lines = logs.map(({ createdAt, level, output }) => ({
    created_at: toMs(createdAt),
    level: level === 0 ? undefined : toWord(LOG_LEVELS, level, 1, "level"),
    output,
  }));
  if (batchId.length > 0) {
    if (lines.length > 0) yield { log_source_id, logs: lines, batch_id: toId(batchId, "batch_id") };
    return;
  }
  for (let start = 0; start < lines.length; start += MAX_LINES_PER_MESSAGE) {
    yield { log_source_id, logs: lines.slice(start, start + MAX_LINES_PER_MESSAGE) };
  }
}

const MAX_PATH_CHARS = 4_096;
/** Maximum processes in one report. */
const MAX_KILLS = 20;

/** Sanitizes the report, because it comes from inside a workspace. */
const toResources = (
  { volumes, memory, memoryKills }: PushResourcesMonitoringUsageRequest_Datapoint,
  now: number,
): ResourcesReport => {
  const [home] = volumes;
  const toAmounts = ({ used, total }: { used: bigint; total: bigint }) => {
    const total_bytes = Math.max(0, toCount(total));
    return { used_bytes: Math.min(total_bytes, Math.max(0, toCount(used))), total_bytes };
  };
  return {
    home: home && Object.assign(toAmounts(home), { path: toLine(home.volume).slice(0, MAX_PATH_CHARS) }),
    memory: memory && toAmounts(memory),
    memory_kills: memoryKills.slice(-MAX_KILLS).map(({ process, killedAt }) => ({
      process: sanitizeCommand(process),
      killed_at: Math.min(now, toMs(killedAt) ?? now),
    })),
  };
};

type OpenConnections = Pick<ReturnType<typeof toStats>, "connection_count" | "session_counts">;

const hasConnections = ({ connection_count, session_counts }: OpenConnections): boolean =>
  connection_count > 0 || Object.values(session_counts).some((count) => count > 0);

/**
 * Records running jobs and open connections as activity, but not idle streams (facts/platform 2.7, rule TI-32). A failure to record it does
 * not reject the report.
 */
const noteUse = async (
  ctx: ApiContext,
  agent_id: string,
  stats: ReturnType<typeof toStats>,
  metrics: Stats["metrics"],
): Promise<void> => {
  const jobs = readJobs(metrics);
  const idleCount = readIdleStreams(metrics);
  if (!hasConnections(stats) && jobs.length === 0) return;
  const agent = await findAgentById(ctx.store, agent_id);
  if (!agent || !isLatest(agent)) return;
  // Agents that report idle connections include the sessions in the connection count.
  const isUsed = idleCount > 0 ? stats.connection_count > idleCount : hasConnections(stats);
  if (hasConnections(stats)) ctx.usage.noteReport(agent.workspace_id, agent_id, stats);
  if (!isUsed && jobs.length === 0) return;
  const detail = jobs.map(({ command }) => command).join(", ");
  const use = jobs.length > 0 ? { reason: "job" as const, detail } : { reason: "agent_stats" as const };
  const report = { ...use, at: ctx.clock.now(), agent_id };
  await ctx.workspaces.ask(agent.workspace_id, "recordActivity", report).catch((error) => {
    log("agents").warn("cannot record the use of agent {agent_id}: {error}", { agent_id, error });
  });
};

const toStats = (stats: Stats) => ({
  connection_count: toCount(stats.connectionCount),
  // Zero means "not measured", so a latency below one millisecond is rounded up to one.
  connection_median_latency_ms: Math.ceil(Math.max(-1, stats.connectionMedianLatencyMs) || 0),
  rx_bytes: toCount(stats.rxBytes),
  tx_bytes: toCount(stats.txBytes),
  session_counts: {
    vscode: toCount(stats.sessionCountVscode),
    jetbrains: toCount(stats.sessionCountJetbrains),
    reconnecting_pty: toCount(stats.sessionCountReconnectingPty),
    ssh: toCount(stats.sessionCountSsh),
    ...Object.fromEntries(Object.entries(stats.sessionCounts).map(([name, value]) => [name, toCount(value)])),
  },
});
