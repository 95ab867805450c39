// Presents agents to callers: combines rows of five tables, and derives status and health at `now` (facts/platform 2.3 to 2.5). Used by the
// agent route and in a build's resources.
import { agentHealth, agentStatus } from "#actors/agent/status.ts";
import { NEVER, toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import { type AppName, formatLabel } from "#base/links/app-label.ts";
import { hideSecretTexts, mapValues, type TextChange } from "#base/secrets/template-secrets.ts";
import { type AgentRow, listAgentsOfResources } from "#db/agents/agents.ts";
import { type AppStatusRow, listAppStatusesByAgents } from "#db/agents/app-statuses.ts";
import { type AgentAppRow, listAppsByAgents } from "#db/agents/apps.ts";
import { type LogSourceRow, listLogSourcesByAgents } from "#db/agents/log-sources.ts";
import { type AgentMetadataRow, listMetadataByAgents } from "#db/agents/metadata.ts";
import { listAgentNames, listShareMaximums } from "#db/agents/named-apps.ts";
import { type AgentScriptRow, listScriptsByAgents } from "#db/agents/scripts.ts";
import type { Store } from "#db/engine/store.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { nullableUuid } from "#schema/nullable-uuid.ts";
import type { App, AppStatus } from "#schema/workspaces/app.ts";
import { getEffectiveLevel, SHARE_LEVELS, type ShareLevel } from "#schema/workspaces/port-share.ts";
import { makeAppHosts } from "../applications/names.ts";
import type { DomainContext } from "../context.ts";

/** What is needed to present agents. */
export type AgentView = {
  readonly store: Pick<Store, "all">;
  /** Recognizes texts that contain secrets (rule TP-33). */
  readonly encryption: Pick<Encryption, "prefix">;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Selects the format of nullable IDs. */
  readonly compat: boolean;
  /** Whether apps have their own hosts. */
  readonly hasAppHosts: boolean;
};

/** Returns the view at the present time; `store` can be a snapshot, so that all rows are from one moment. */
export const makeAgentView = (
  ctx: DomainContext,
  { compat }: { readonly compat: boolean },
  store: AgentView["store"] = ctx.store,
): AgentView => ({
  store,
  encryption: ctx.encryption,
  now: ctx.clock.now(),
  compat,
  hasAppHosts: makeAppHosts(ctx).exist,
});

/** Returns the agents of these resources by resource ID, each list in display order, then by name. */
export const presentAgents = async (
  view: AgentView,
  resourceIds: readonly string[],
): Promise<Map<string, WorkspaceAgent[]>> => {
  const byResource = new Map<string, WorkspaceAgent[]>(resourceIds.map((id) => [id, []]));
  if (resourceIds.length === 0) return byResource;
  const rows = await view.store.all(listAgentsOfResources({ resource_ids: JSON.stringify(resourceIds) }));
  for (const agent of await presentAgentRows(view, rows)) byResource.get(agent.resource_id)?.push(agent);
  return byResource;
};

/** Presents these agents in the given order. */
export const presentAgentRows = async (view: AgentView, rows: readonly AgentRow[]): Promise<WorkspaceAgent[]> => {
  if (rows.length === 0) return [];
  const { store } = view;
  const filter = { agent_ids: JSON.stringify(rows.map(({ id }) => id)) };
  const [apps, statuses, scripts, sources, metadata] = await Promise.all([
    store.all(listAppsByAgents(filter)).then(groupByAgent),
    store.all(listAppStatusesByAgents(filter)).then(groupByAgent),
    store.all(listScriptsByAgents(filter)).then(groupByAgent),
    store.all(listLogSourcesByAgents(filter)).then(groupByAgent),
    store.all(listMetadataByAgents(filter)).then(groupByAgent),
  ]);
  const needsNames = view.hasAppHosts && [...apps.values()].flat().some(({ subdomain }) => subdomain);
  const names = needsNames
    ? Map.groupBy(await store.all(listAgentNames(filter)), ({ agent_id }) => agent_id)
    : undefined;
  const hasSharedApps = [...apps.values()].flat().some(({ sharing_level }) => sharing_level !== SHARE_LEVELS[0]);
  const maximums = hasSharedApps
    ? new Map(
        (await store.all(listShareMaximums(filter))).map(({ agent_id, max_level }) => [
          agent_id,
          max_level as ShareLevel,
        ]),
      )
    : undefined;
  return rows.map((row) =>
    presentAgent(
      row,
      {
        names: names?.get(row.id)?.[0],
        maxLevel: maximums?.get(row.id) ?? "public",
        hide: hideSecretTexts(view.encryption),
        apps: apps.get(row.id) ?? [],
        statuses: statuses.get(row.id) ?? [],
        scripts: scripts.get(row.id) ?? [],
        sources: sources.get(row.id) ?? [],
        metadata: metadata.get(row.id) ?? [],
      },
      view.now,
      view.compat,
    ),
  );
};

const groupByAgent = <R extends { agent_id: string }>(rows: R[]): Map<string, R[]> =>
  Map.groupBy(rows, (row) => row.agent_id);

/** The rows of one agent, and what else its presentation depends on. */
type AgentDetails = {
  /** The names in the host names of the agent's apps; undefined if apps have no hosts of their own. */
  names: Omit<AppName, "app"> | undefined;
  /** The widest sharing level its apps may have. */
  maxLevel: ShareLevel;
  hide: TextChange;
  apps: readonly AgentAppRow[];
  statuses: readonly AppStatusRow[];
  scripts: readonly AgentScriptRow[];
  sources: readonly LogSourceRow[];
  metadata: readonly AgentMetadataRow[];
};

const presentAgent = (row: AgentRow, details: AgentDetails, now: number, compat: boolean): WorkspaceAgent => {
  const status = agentStatus(row, now);
  const blocks = details.scripts.some((script) => script.run_on_start && script.start_blocks_login);
  return {
    id: row.id,
    parent_id: nullableUuid(row.parent_id, compat),
    resource_id: row.resource_id,
    name: row.name,
    status,
    lifecycle_state: row.lifecycle_state as WorkspaceAgent["lifecycle_state"],
    health: agentHealth(status, row.lifecycle_state),
    created_at: toRfc3339(row.created_at),
    updated_at: toRfc3339(row.updated_at),
    first_connected_at: toOptionalRfc3339(row.first_connected_at),
    last_connected_at: toOptionalRfc3339(row.last_connected_at),
    disconnected_at: toOptionalRfc3339(row.disconnected_at),
    started_at: toOptionalRfc3339(row.started_at),
    ready_at: toOptionalRfc3339(row.ready_at),
    connection_timeout_seconds: row.connection_timeout_seconds,
    architecture: row.architecture,
    operating_system: row.operating_system,
    directory: row.directory,
    expanded_directory: row.expanded_directory,
    instance_id: row.instance_id,
    version: row.version,
    api_version: row.api_version,
    environment_variables: mapValues(row.environment_variables, details.hide),
    display_apps: row.display_apps,
    subsystems: row.subsystems as WorkspaceAgent["subsystems"],
    startup_script_behavior: blocks ? "blocking" : "non-blocking",
    troubleshooting_url: row.troubleshooting_url,
    logs_length: row.logs_length,
    logs_overflowed: row.logs_overflowed,
    ...(row.resources === null ? {} : { resources: row.resources }),
    // The latency of a disconnected agent is unknown.
    latency: status === "connected" ? row.latency : {},
    apps: details.apps.map((app) => presentApp(app, details)),
    scripts: details.scripts.map((script) => presentScript(script, details.hide)),
    log_sources: details.sources.map(presentLogSource),
    metadata: details.metadata.map((entry) => presentMetadata(entry, now, details.hide)),
  };
};

const presentApp = (
  app: AgentAppRow,
  { statuses, names, maxLevel }: Pick<AgentDetails, "statuses" | "names" | "maxLevel">,
): App => ({
  id: app.id,
  slug: app.slug,
  display_name: app.display_name,
  command: app.command,
  url: app.url,
  external: app.external,
  subdomain: app.subdomain,
  subdomain_name: app.subdomain && names ? formatLabel({ ...names, app: app.slug }) : "",
  hidden: app.hidden,
  group: app.group,
  icon: app.icon,
  tooltip: app.tooltip,
  health: app.health as App["health"],
  healthcheck: {
    url: app.healthcheck_url,
    interval: app.healthcheck_interval,
    threshold: app.healthcheck_threshold,
  },
  open_in: app.open_in as App["open_in"],
  sharing_level: getEffectiveLevel(app.sharing_level as ShareLevel, maxLevel),
  statuses: statuses.filter(({ app_id }) => app_id === app.id).map(presentStatus),
});

const presentStatus = ({ id, agent_id, app_id, workspace_id, created_at, ...row }: AppStatusRow): AppStatus => ({
  id,
  agent_id,
  app_id,
  workspace_id,
  created_at: toRfc3339(created_at),
  state: row.state as AppStatus["state"],
  message: row.message,
  uri: row.uri,
  icon: row.icon,
  needs_user_attention: row.needs_user_attention,
});

const NANOSECONDS = 1_000_000_000;

const presentScript = (script: AgentScriptRow, hide: TextChange): WorkspaceAgent["scripts"][number] => ({
  id: script.id,
  log_source_id: script.log_source_id,
  log_path: script.log_path,
  display_name: script.display_name,
  script: hide(script.script),
  cron: script.cron,
  run_on_start: script.run_on_start,
  run_on_stop: script.run_on_stop,
  start_blocks_login: script.start_blocks_login,
  ...(script.is_dotfiles ? { is_dotfiles: true } : {}),
  timeout: script.timeout_seconds * NANOSECONDS,
  ...(script.status === null ? {} : { status: script.status as "ok", exit_code: script.exit_code ?? 0 }),
});

const presentLogSource = (source: LogSourceRow): WorkspaceAgent["log_sources"][number] => ({
  id: source.id,
  workspace_agent_id: source.agent_id,
  display_name: source.display_name,
  icon: source.icon,
  created_at: toRfc3339(source.created_at),
});

/** Presents one metadata result at `now`, milliseconds since 1970. `hide` is from `hideSecretTexts`. */
export const presentMetadata = (
  row: AgentMetadataRow,
  now: number,
  hide: TextChange,
): WorkspaceAgent["metadata"][number] => ({
  description: {
    display_name: row.display_name,
    key: row.key,
    script: hide(row.script),
    interval: row.interval,
    timeout: row.timeout,
  },
  result: {
    // Clients of the metadata stream reject the whole list if a time is missing.
    collected_at: row.collected_at === null ? NEVER : toRfc3339(row.collected_at),
    age: row.collected_at === null ? 0 : Math.max(0, Math.floor((now - row.collected_at) / 1000)),
    value: row.value,
    error: row.error,
  },
});
