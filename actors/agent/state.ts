// The workspace agent's behavior as pure functions: state and report in, next state and writes out. The actor commits and
// announces; nothing here reads a clock or waits (facts/platform 2.2 to 2.4).
import { invalidField } from "#base/errors.ts";
import { type AgentFacts, type AgentRow, type AgentStatsRow, saveAgentStats, updateAgent } from "#db/agents/agents.ts";
import { insertAppStatus } from "#db/agents/app-statuses.ts";
import { type AgentAppRow, updateAgentApp } from "#db/agents/apps.ts";
import { type AgentMetadataRow, updateAgentMetadata } from "#db/agents/metadata.ts";
import { type AgentScriptRow, keepScriptTiming, updateAgentScript } from "#db/agents/scripts.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Latency } from "#db/schema/agents.ts";
import { type LifecycleState, SUBSYSTEMS } from "#schema/agents/agent.ts";
import { asIcon, asLink } from "#schema/text.ts";
import type { AppHealth, AppState } from "#schema/workspaces/app.ts";
import { agentStatus } from "./status.ts";

export type AgentState = {
  readonly agent: AgentFacts;
  /** Log source id -> integer key, and the id of the newest batch that carried one. */
  readonly sources: ReadonlyMap<string, { readonly key: number; readonly last_batch: string | null }>;
  readonly apps: readonly Pick<AgentAppRow, "id" | "slug" | "health" | "healthcheck_url">[];
  readonly scripts: readonly Pick<AgentScriptRow, "id" | "status" | "exit_code">[];
  readonly metadata: readonly Pick<AgentMetadataRow, "key">[];
  /** The connection that speaks for the agent now; unknown after this instance was loaded afresh. */
  readonly connection: string | undefined;
};

/** What a report came to. `visible`: a watcher of the workspace sees a difference. */
export type Decision<Reply = void> = {
  readonly state: AgentState;
  readonly writes: readonly Statement[];
  readonly visible: boolean;
  readonly reply: Reply;
};

const unchanged = <Reply>(state: AgentState, reply: Reply): Decision<Reply> => ({
  state,
  writes: [],
  visible: false,
  reply,
});

/** A change of the agent's own row; one that people can see moves `updated_at` (rule AG-23). */
const changed = (state: AgentState, patch: Partial<AgentRow>, now: number, visible = true): Decision => ({
  state: { ...state, agent: { ...state.agent, ...patch } },
  writes: [updateAgent(state.agent.id, visible ? { ...patch, updated_at: now } : patch, { expect: 1 })],
  visible,
  reply: undefined,
});

/** Who speaks for the agent, and how far it is from the relays as far as that is known. */
type Sign = { readonly connection_id: string; readonly latency: Latency; readonly now: number };

/** A connection begins to speak for the agent; it takes the place of any other. */
export const connected = (
  state: AgentState,
  { connection_id, api_version, latency, now }: Sign & { api_version: string },
): Decision => {
  const { first_connected_at } = state.agent;
  const patch = { first_connected_at: first_connected_at ?? now, ...alive({ latency, now }), api_version };
  const { state: next, ...decision } = changed(state, patch, now);
  return { ...decision, state: { ...next, connection: connection_id } };
};

/** A sign of life. Watchers hear of it only when the agent had counted as disconnected. A replaced connection is ignored. */
export const heartbeat = (state: AgentState, { connection_id, latency, now }: Sign): Decision => {
  if (state.connection !== undefined && state.connection !== connection_id) return unchanged(state, undefined);
  const visible = agentStatus(state.agent, now) !== "connected";
  const { state: next, ...decision } = changed(state, alive({ latency, now }), now, visible);
  return { ...decision, state: { ...next, connection: connection_id } };
};

const alive = ({ latency, now }: Pick<Sign, "latency" | "now">) => ({
  last_connected_at: now,
  disconnected_at: null,
  latency,
});

/** The connection has disconnected. Nothing happens when another one has taken its place. */
export const disconnected = (
  state: AgentState,
  { connection_id, now }: { connection_id: string; now: number },
): Decision => {
  if (state.connection !== undefined && state.connection !== connection_id) return unchanged(state, undefined);
  const { state: next, ...decision } = changed(state, { disconnected_at: now }, now);
  return { ...decision, state: { ...next, connection: undefined } };
};

const DAY_MS = 86_400_000;

/** A time given by a caller, when it is within a day of ours; else ours. */
export const saneTime = (given: number | undefined, now: number): number =>
  given !== undefined && Math.abs(given - now) <= DAY_MS ? given : now;

/** Any state may follow any other; the newest report by the caller's time wins, a late one is dropped (rule AG-4). */
export const lifecycle = (
  state: AgentState,
  report: { state: LifecycleState; changed_at?: number; now: number },
): Decision => {
  const { agent } = state;
  const at = saneTime(report.changed_at, report.now);
  if (agent.lifecycle_changed_at !== null && at < agent.lifecycle_changed_at) return unchanged(state, undefined);
  if (agent.lifecycle_changed_at === at && agent.lifecycle_state === report.state) return unchanged(state, undefined);
  const times = ((): Partial<AgentRow> => {
    if (report.state === "starting") return { started_at: at, ready_at: null };
    const started = ["ready", "start_timeout", "start_error"].includes(report.state);
    return started ? { started_at: agent.started_at ?? at, ready_at: at } : {};
  })();
  return changed(state, { lifecycle_state: report.state, lifecycle_changed_at: at, ...times }, report.now);
};

const SEMVER = /^v?\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;
const MAX_TEXT = 4096;

/** What the agent says of itself when it starts. 400 for a version that is not semantic and for unknown subsystems. */
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
  const known: readonly string[] = SUBSYSTEMS;
  for (const subsystem of report.subsystems) {
    if (!known.includes(subsystem)) throw invalidField("subsystems", `must be one of ${SUBSYSTEMS.join(", ")}`);
  }
  const { version, expanded_directory, api_version } = report;
  const patch = { version, expanded_directory, subsystems: [...new Set(report.subsystems)].sort() };
  return changed(state, { ...patch, ...(api_version === undefined ? {} : { api_version }) }, report.now);
};

/** Only apps with a health check have a health; values that are the same write nothing. 400 for other apps, nothing is stored then. */
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
  if (writes.size === 0) return unchanged(state, undefined);
  return {
    state: { ...state, apps: state.apps.map((app) => ({ ...app, health: healths.get(app.id) ?? app.health })) },
    writes: [...writes].map(([id, health]) => updateAgentApp(id, { health }, { expect: 1 })),
    visible: true,
    reply: undefined,
  };
};

/** The agent has signed in with its cloud identity: this token counts from now on, and no other. */
export const signIn = (state: AgentState, { token_hash, now }: { token_hash: string; now: number }): Decision =>
  state.agent.token_hash === token_hash ? unchanged(state, undefined) : changed(state, { token_hash }, now, false);

/** What an app says of itself. */
export type AppReport = {
  readonly app_slug: string;
  readonly state: AppState;
  readonly message: string;
  readonly uri: string;
  readonly icon: string;
  readonly needs_user_attention: boolean;
};

/** What an app says of itself, shown without control characters. 400 for an app this agent does not have (facts/platform 3.6). */
export const appStatus = (state: AgentState, report: { id: string; now: number } & AppReport): Decision => {
  const app = state.apps.find(({ slug }) => slug === report.app_slug);
  if (!app) throw invalidField("app_slug", "is not the slug of an app of this agent");
  const { id, needs_user_attention, now: created_at } = report;
  const icon = asIcon(report.icon);
  const uri = asLink(report.uri);
  const of = { agent_id: state.agent.id, app_id: app.id, workspace_id: state.agent.workspace_id };
  const message = printable(report.message);
  return {
    state,
    writes: insertAppStatus({ id, ...of, state: report.state, message, uri, icon, needs_user_attention, created_at }),
    visible: true,
    reply: undefined,
  };
};

/** Line ends and tabs become one blank; every other control character goes. */
const printable = (text: string): string =>
  text
    .replace(/[\t\n\v\f\r]+/g, " ")
    .replace(/\p{Cc}/gu, "")
    .toWellFormed()
    .replace(/[\u202a-\u202e\u2066-\u2069]/g, "")
    .trim();

/** Values and errors longer than this are cut (facts/platform 2.2). */
export const METADATA_BYTES = 2048;

/** The newest results. Keys the template does not know are ignored; the server's time counts. Watchers of workspaces do not hear of it. */
export const metadata = (
  state: AgentState,
  { results, now }: { results: readonly { key: string; value: string; error: string }[]; now: number },
): Decision => {
  const known = new Set(state.metadata.map(({ key }) => key));
  const newest = new Map(results.filter(({ key }) => known.has(key)).map((result) => [result.key, result]));
  const rows = [...newest.values()].map(({ key, value, error }) => {
    const kept = cut(value);
    const tooLong = kept === value ? "" : `value of ${Buffer.byteLength(value)} bytes exceeded ${METADATA_BYTES} bytes`;
    return { agent_id: state.agent.id, key, value: kept, error: cut(error || tooLong), collected_at: now };
  });
  return { ...unchanged(state, undefined), writes: rows.length > 0 ? [updateAgentMetadata(rows)] : [] };
};

const cut = (text: string): string => {
  const bytes = Buffer.from(text);
  if (bytes.length <= METADATA_BYTES) return text;
  // A character that was cut in the middle is left out.
  return new TextDecoder("utf-8").decode(bytes.subarray(0, METADATA_BYTES)).replace(/\uFFFD$/, "");
};

/** One run of a script. 400 for a script that is not this agent's. */
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
      ...keepScriptTiming({ ...run, agent_id: state.agent.id }),
      updateAgentScript(run.script_id, { status, exit_code }),
    ],
    visible: true,
    reply: undefined,
  };
};

/** The newest statistics. Watchers of workspaces do not hear of them. */
export const stats = (state: AgentState, report: Omit<AgentStatsRow, "agent_id">): Decision => ({
  ...unchanged(state, undefined),
  writes: [saveAgentStats({ ...report, agent_id: state.agent.id })],
});
