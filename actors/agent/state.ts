// The workspace agent's behavior as pure functions: they take the state and a report and return the next state and its writes. The actor
// commits and announces; nothing here reads a clock or waits (facts/platform 2.2 to 2.4).
import { invalidField } from "#base/errors.ts";
import { type AgentFacts, type AgentRow, type AgentStatsRow, saveAgentStats, updateAgent } from "#db/agents/agents.ts";
import { insertAppStatus } from "#db/agents/app-statuses.ts";
import { type AgentAppRow, updateAgentApp } from "#db/agents/apps.ts";
import { type AgentMetadataRow, updateAgentMetadata } from "#db/agents/metadata.ts";
import { type AgentScriptRow, replaceScriptTiming, updateAgentScript } from "#db/agents/scripts.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Latency } from "#db/schema/agents.ts";
import { type LifecycleState, SUBSYSTEMS } from "#schema/agents/agent.ts";
import { toIcon, toLink } from "#schema/text.ts";
import type { AppHealth, AppState } from "#schema/workspaces/app.ts";
import { agentStatus } from "./status.ts";

export type AgentState = {
  readonly agent: AgentFacts;
  /** Maps the ID of a log source to its integer key and the ID of its last batch, if that had one. */
  readonly sources: ReadonlyMap<string, { readonly key: number; readonly last_batch: string | null }>;
  readonly apps: readonly Pick<AgentAppRow, "id" | "slug" | "health" | "healthcheck_url">[];
  readonly scripts: readonly Pick<AgentScriptRow, "id" | "status" | "exit_code">[];
  readonly metadata: readonly Pick<AgentMetadataRow, "key">[];
  /** The agent's current connection; undefined after the actor was reloaded. */
  readonly connection: string | undefined;
};

/** The result of applying a report. `visible`: workspace watchers see a difference. */
export type Decision<Reply = void> = {
  readonly state: AgentState;
  readonly writes: readonly Statement[];
  readonly visible: boolean;
  readonly reply: Reply;
};

const keepState = <Reply>(state: AgentState, reply: Reply): Decision<Reply> => ({
  state,
  writes: [],
  visible: false,
  reply,
});

/** Changes the agent's own row. A visible change updates `updated_at` (rule AG-23). */
const patchAgent = (state: AgentState, patch: Partial<AgentRow>, now: number, visible = true): Decision => ({
  state: { ...state, agent: { ...state.agent, ...patch } },
  writes: [updateAgent(state.agent.id, visible ? { ...patch, updated_at: now } : patch, { expect: 1 })],
  visible,
  reply: undefined,
});

/** A report's connection, and the agent's latency to the relays. */
type ConnectionReport = { readonly connection_id: string; readonly latency: Latency; readonly now: number };

/**
 * What a new connection says of itself. `daemon_id` names the process of Slipway's own daemon: empty for one without a name, undefined for
 * other agents.
 */
export type Connected = ConnectionReport & {
  readonly api_version: string;
  readonly daemon_id?: string;
  /** True if people other than the owner can enter the workspace. */
  readonly is_shared?: boolean;
};

/**
 * Makes a connection the agent's current one, replacing any other. Records when another process of the daemon connects to a shared workspace:
 * anyone who can enter may have started it (rule AG-29).
 */
export const connected = (
  state: AgentState,
  { connection_id, api_version, latency, daemon_id, is_shared = false, now }: Connected,
): Decision => {
  const { first_connected_at, daemon_id: before } = state.agent;
  const isReplaced = is_shared && daemon_id !== undefined && before !== "" && before !== daemon_id;
  const patch = {
    first_connected_at: first_connected_at ?? now,
    ...toHeartbeatPatch({ latency, now }),
    api_version,
    ...(daemon_id === undefined ? {} : { daemon_id }),
    ...(isReplaced ? { daemon_replaced_at: now } : {}),
  };
  const { state: next, ...decision } = patchAgent(state, patch, now);
  return { ...decision, state: { ...next, connection: connection_id } };
};

/** Applies a heartbeat. Watchers are notified only when the agent was considered disconnected. Ignores a replaced connection. */
export const heartbeat = (state: AgentState, { connection_id, latency, now }: ConnectionReport): Decision => {
  if (state.connection !== undefined && state.connection !== connection_id) return keepState(state, undefined);
  const visible = agentStatus(state.agent, now) !== "connected";
  const { state: next, ...decision } = patchAgent(state, toHeartbeatPatch({ latency, now }), now, visible);
  return { ...decision, state: { ...next, connection: connection_id } };
};

const toHeartbeatPatch = ({ latency, now }: Pick<ConnectionReport, "latency" | "now">) => ({
  last_connected_at: now,
  disconnected_at: null,
  latency,
});

/** Applies a disconnect. Does nothing when another connection has replaced this one. */
export const disconnected = (
  state: AgentState,
  { connection_id, now }: { connection_id: string; now: number },
): Decision => {
  if (state.connection !== undefined && state.connection !== connection_id) return keepState(state, undefined);
  const { state: next, ...decision } = patchAgent(state, { disconnected_at: now }, now);
  return { ...decision, state: { ...next, connection: undefined } };
};

const DAY_MS = 86_400_000;

/** Returns the reported time if it is within a day of the server's time, otherwise the server's. */
export const clampReportedTime = (given: number | undefined, now: number): number =>
  given !== undefined && Math.abs(given - now) <= DAY_MS ? given : now;

/**
 * Applies a lifecycle state. Any state may follow any other; the newest report by the caller's time wins, and late ones are dropped (rule
 * AG-4).
 */
export const lifecycle = (
  state: AgentState,
  report: { state: LifecycleState; changed_at?: number; now: number },
): Decision => {
  const { agent } = state;
  const at = clampReportedTime(report.changed_at, report.now);
  if (agent.lifecycle_changed_at !== null && at < agent.lifecycle_changed_at) return keepState(state, undefined);
  if (agent.lifecycle_changed_at === at && agent.lifecycle_state === report.state) return keepState(state, undefined);
  const times = ((): Partial<AgentRow> => {
    if (report.state === "starting") return { started_at: at, ready_at: null };
    const started = ["ready", "start_timeout", "start_error"].includes(report.state);
    return started ? { started_at: agent.started_at ?? at, ready_at: at } : {};
  })();
  return patchAgent(state, { lifecycle_state: report.state, lifecycle_changed_at: at, ...times }, report.now);
};

const SEMVER = /^v?\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;
const MAX_TEXT = 4096;

/** Applies the agent's startup report. Throws 400 for a version that is not semver, a directory that is too long, or unknown subsystems. */
export const startup = (
  state: AgentState,
  report: {
    version: string;
    expanded_directory: string;
    subsystems: readonly string[];
    api_version?: string;
    now: number;
  },
): Decision => {
  if (report.version.length > 256 || !SEMVER.test(report.version)) {
    throw invalidField("version", "must be a semantic version");
  }
  if (report.expanded_directory.length > MAX_TEXT) throw invalidField("expanded_directory", "is too long");
  const valid: readonly string[] = SUBSYSTEMS;
  for (const subsystem of report.subsystems) {
    if (!valid.includes(subsystem)) throw invalidField("subsystems", `must be one of ${SUBSYSTEMS.join(", ")}`);
  }
  const { version, expanded_directory, api_version } = report;
  const patch = { version, expanded_directory, subsystems: [...new Set(report.subsystems)].sort() };
  return patchAgent(state, { ...patch, ...(api_version === undefined ? {} : { api_version }) }, report.now);
};

/** Writes only changed health values of apps. Throws 400, without storing any, if an app is unknown or has no health check. */
export const appHealths = (
  state: AgentState,
  { updates }: { updates: readonly { id: string; health: AppHealth }[] },
): Decision => {
  const healths = new Map(state.apps.map((app) => [app.id, app.health]));
  const writes = new Map<string, AppHealth>();
  for (const { id, health } of updates) {
    const app = state.apps.find((candidate) => candidate.id === id);
    if (!app) throw invalidField("id", "is not an app of this agent");
    if (app.healthcheck_url === "") throw invalidField("id", `the app ${app.slug} has no health check`);
    healths.set(id, health);
    if (app.health !== health) writes.set(id, health);
    else writes.delete(id);
  }
  if (writes.size === 0) return keepState(state, undefined);
  return {
    state: { ...state, apps: state.apps.map((app) => ({ ...app, health: healths.get(app.id) ?? app.health })) },
    writes: [...writes].map(([id, health]) => updateAgentApp(id, { health }, { expect: 1 })),
    visible: true,
    reply: undefined,
  };
};

/** Replaces the agent's token after it has signed in with its cloud identity. The previous token is revoked. */
export const signIn = (state: AgentState, { token_hash, now }: { token_hash: string; now: number }): Decision =>
  state.agent.token_hash === token_hash ? keepState(state, undefined) : patchAgent(state, { token_hash }, now, false);

/**
 * Replaces the agent's token with the next one, which the daemon already has. `made_at` is a time before the daemon got it. Ignores a
 * token of an earlier generation.
 */
export const renewToken = (
  state: AgentState,
  renewal: { token_hash: string; token_generation: number; made_at: number; now: number },
): Decision => {
  const { token_hash, token_generation, made_at, now } = renewal;
  if (token_generation <= state.agent.token_generation) return keepState(state, undefined);
  return patchAgent(state, { token_hash, token_generation, token_made_at: made_at }, now, false);
};

/** A status reported by an app. */
export type AppReport = {
  readonly app_slug: string;
  readonly state: AppState;
  readonly message: string;
  readonly uri: string;
  readonly icon: string;
  readonly needs_user_attention: boolean;
};

/**
 * Applies a status reported by an app, without control characters. Throws 400 for an app that this agent does not have (facts/platform
 * 3.6).
 */
export const appStatus = (state: AgentState, report: { id: string; now: number } & AppReport): Decision => {
  const app = state.apps.find(({ slug }) => slug === report.app_slug);
  if (!app) throw invalidField("app_slug", "is not the slug of an app of this agent");
  const { id, needs_user_attention, now: created_at } = report;
  const icon = toIcon(report.icon);
  const uri = toLink(report.uri);
  const ids = { agent_id: state.agent.id, app_id: app.id, workspace_id: state.agent.workspace_id };
  const message = printable(report.message);
  return {
    state,
    writes: insertAppStatus({ id, ...ids, state: report.state, message, uri, icon, needs_user_attention, created_at }),
    visible: true,
    reply: undefined,
  };
};

/** Replaces runs of line breaks and tabs with one space, and removes other control characters. */
const printable = (text: string): string =>
  text
    .replace(/[\t\n\v\f\r]+/g, " ")
    .replace(/\p{Cc}/gu, "")
    .toWellFormed()
    .replace(/[\u202a-\u202e\u2066-\u2069]/g, "")
    .trim();

/** Longer values and errors are truncated (facts/platform 2.2). */
export const MAX_METADATA_BYTES = 2048;

/**
 * Stores the newest metadata results, timestamped by the server. Ignores keys that the template does not define. Workspace watchers are not
 * notified.
 */
export const metadata = (
  state: AgentState,
  { results, now }: { results: readonly { key: string; value: string; error: string }[]; now: number },
): Decision => {
  const definedKeys = new Set(state.metadata.map(({ key }) => key));
  const newest = new Map(results.filter(({ key }) => definedKeys.has(key)).map((result) => [result.key, result]));
  const rows = [...newest.values()].map(({ key, value, error }) => {
    const truncated = truncateMetadata(value);
    const tooLong =
      truncated === value ? "" : `value of ${Buffer.byteLength(value)} bytes exceeded ${MAX_METADATA_BYTES} bytes`;
    return {
      agent_id: state.agent.id,
      key,
      value: truncated,
      error: truncateMetadata(error || tooLong),
      collected_at: now,
    };
  });
  return { ...keepState(state, undefined), writes: rows.length > 0 ? [updateAgentMetadata(rows)] : [] };
};

const truncateMetadata = (text: string): string => {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_METADATA_BYTES) return text;
  // Drops a character that was cut in the middle.
  return new TextDecoder("utf-8").decode(bytes.subarray(0, MAX_METADATA_BYTES)).replace(/\uFFFD$/, "");
};

/** Stores one run of a script. Throws 400 for a script that this agent does not have. */
export const scriptCompleted = (
  state: AgentState,
  run: {
    script_id: string;
    started_at: number;
    ended_at: number;
    exit_code: number;
    stage: "start" | "stop" | "cron";
    status: "ok" | "exit_failure" | "timed_out" | "pipes_left_open";
  },
): Decision => {
  if (!state.scripts.some(({ id }) => id === run.script_id)) {
    throw invalidField("script_id", "is not a script of this agent");
  }
  const { status, exit_code } = run;
  return {
    state: {
      ...state,
      scripts: state.scripts.map((script) => (script.id === run.script_id ? { ...script, status, exit_code } : script)),
    },
    writes: [
      ...replaceScriptTiming({ ...run, agent_id: state.agent.id }),
      updateAgentScript(run.script_id, { status, exit_code }),
    ],
    visible: true,
    reply: undefined,
  };
};

/** Stores the newest statistics. Workspace watchers are not notified. */
export const stats = (state: AgentState, report: Omit<AgentStatsRow, "agent_id">): Decision => ({
  ...keepState(state, undefined),
  writes: [saveAgentStats({ ...report, agent_id: state.agent.id })],
});
