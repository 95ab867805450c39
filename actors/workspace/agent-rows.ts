// Builds the rows of the resources and agents that a build creates. Returns the agents' tokens in plaintext for the worker, and stores only
// their digests. Pure; used by plan.ts.
import type { Encryption } from "#base/encryption.ts";
import { sha256 } from "#base/ids.ts";
import { BuildSecrets, mapValues, sealSecretTexts, type TextChange } from "#base/secrets/template-secrets.ts";
import { quoteForShell } from "#base/text/shell-quote.ts";
import { insertAgent } from "#db/agents/agents.ts";
import { insertAgentApp } from "#db/agents/apps.ts";
import { deleteAgentsOfBuild, releaseApp, releaseToken } from "#db/agents/build-agents.ts";
import { insertLogSource } from "#db/agents/log-sources.ts";
import { insertAgentMetadata } from "#db/agents/metadata.ts";
import { insertAgentScript } from "#db/agents/scripts.ts";
import type { Statement } from "#db/engine/sql.ts";
import { deleteResources, insertResource } from "#db/workspaces/resources.ts";
import type { Manifest, ManifestAgent, ManifestResource, ManifestScript } from "#schema/templates/manifest.ts";
import { parsePlan } from "#schema/templates/repository.ts";
import { toIcon, toLine, toLink } from "#schema/text.ts";
import type { Dotfiles } from "#schema/users/dotfiles.ts";
import { ProvisionError } from "#src/provisioners/provisioner.ts";
import { MAX_RESOURCES_CHARS } from "#src/provisioners/render.ts";

/** After this time, a start continues without dotfiles. */
const DOTFILES_TIMEOUT_SECONDS = 300;

/** Runs `slipway dotfiles` of the agent's own binary, so that there is only one implementation. */
const toDotfilesScript = ({ url, branch, install_command }: Dotfiles): ManifestScript => {
  const options = [
    "--yes",
    "--replace",
    ...(branch === "" ? [] : [`--branch=${quoteForShell(branch)}`]),
    ...(install_command === "" ? [] : [`--install-command=${quoteForShell(install_command)}`]),
  ];
  return {
    display_name: "Dotfiles",
    // Git must not wait for the owner to link an account, because that would block the other start scripts.
    script: `SLIPWAY_GIT_NO_WAIT=1 exec "$CODER_SCRIPT_BIN_DIR/slipway" dotfiles ${options.join(" ")} ${quoteForShell(url)}\n`,
    run_on_start: true,
    timeout: DOTFILES_TIMEOUT_SECONDS,
  };
};

export type AgentRowsInput = {
  /** The rendered template. */
  readonly manifest: Manifest;
  readonly now: number;
  readonly workspace_id: string;
  readonly build_id: string;
  readonly job_id: string;
  /** The first of the reserved keys for agents, and the first for log sources, of which each script needs one (`countScripts`). */
  readonly agent_key: number;
  readonly source_key: number;
  /** The system of agents for which the template names none. */
  readonly machine: { readonly os: string; readonly arch: string };
  readonly uuid: () => string;
  /** Digests of the running daemons' tokens by agent name. The new agents take over these tokens (rule PB-8). */
  readonly kept?: ReadonlyMap<string, string>;
  readonly encryption: Encryption;
  /** Values of sensitive variables, and secrets of the owner. Texts that contain one are stored encrypted or masked (rule TP-33). */
  readonly secrets: readonly string[];
  /** Whether agents get none of the owner's data, regardless of the template. */
  readonly no_user_data: boolean;
  /** The dotfiles that agents install before their start scripts. */
  readonly dotfiles?: Dotfiles | undefined;
  /** Defaults to start. A stop creates no agents. */
  readonly transition?: "start" | "stop";
};

export type CreatedAgents = {
  readonly rows: Statement[];
  readonly agents: { name: string; id: string; token: string }[];
  readonly daily_cost: number;
};

const DISPLAY_APPS = ["vscode", "web_terminal", "port_forwarding_helper", "ssh_helper"];
/** Seconds (facts/platform 2.3). */
const CONNECTION_TIMEOUT_SECONDS = 120;
/** Default timeout of metadata scripts in seconds. */
const METADATA_TIMEOUT_SECONDS = 10;

/**
 * Returns the rows. The first statements delete the rows of an earlier attempt of the build. Throws ProvisionError if the resources of a
 * start are too large, because every list of workspaces reads them.
 */
export const buildAgentRows = (input: AgentRowsInput): CreatedAgents => {
  const keys = { agent: input.agent_key, source: input.source_key };
  const rows: Statement[] = [...deleteAgentsOfBuild(input.build_id), deleteResources(input.job_id)];
  const agents: CreatedAgents["agents"] = [];
  let displayOrder = 0;
  const secrets = new BuildSecrets(input.secrets);
  const resources = input.manifest.resources.map((resource) => hideSecrets(resource, secrets));
  if (input.transition !== "stop" && JSON.stringify(resources).length > MAX_RESOURCES_CHARS)
    throw new ProvisionError(`The workspace's resources have more than ${MAX_RESOURCES_CHARS} characters.`);
  for (const resource of resources) {
    const id = input.uuid();
    rows.push(toResourceRow(id, resource, input));
    if (input.transition === "stop") continue;
    for (const agent of resource.agents ?? []) {
      const created = { name: agent.name, id: input.uuid(), token: (agent.token ?? input.uuid()).toLowerCase() };
      agents.push(created);
      const keysAndOrder = { resource_id: id, key: keys.agent++, display_order: displayOrder++ };
      // Only the newest agent may have a token that is kept or that the template sets.
      const tokenHash = input.kept?.get(agent.name);
      if (tokenHash ?? agent.token) rows.push(releaseToken(tokenHash ?? sha256(created.token)));
      const isPrivate = agent.repository !== undefined && parsePlan(agent.repository) !== undefined;
      const seal = sealSecretTexts(input.encryption, created.id, isPrivate ? "all" : secrets);
      rows.push(
        toAgentRow(agent, created, keysAndOrder, input, seal),
        ...toAgentItems(agent, created.id, keys, input, seal),
      );
    }
  }
  return { rows, agents, daily_cost: sumDailyCost(input.manifest) };
};

/** Members that only the agent gets. Their texts are encrypted instead of masked, except those of `docker`, which are not stored. */
const AGENT_TEXTS: ReadonlySet<string> = new Set(["env", "script", "token", "docker"]);

/** Masks the secrets in all texts that people see. */
const hideSecrets = <T>(value: T, secrets: BuildSecrets): T => {
  if (typeof value === "string") return secrets.hide(value) as T;
  if (Array.isArray(value)) return value.map((one) => hideSecrets(one, secrets)) as T;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [
    key,
    AGENT_TEXTS.has(key) ? member : hideSecrets(member, secrets),
  ]);
  return Object.fromEntries(entries) as T;
};

type AgentScript = ManifestScript & { readonly is_dotfiles?: boolean };
type OwnerInput = Pick<AgentRowsInput, "dotfiles" | "no_user_data">;

/** Returns the template's scripts. If the agent may have the owner's data, a script that installs the owner's dotfiles comes first. */
const listScripts = (
  { scripts = [], api_key_scope = "all" }: ManifestAgent,
  { dotfiles, no_user_data }: OwnerInput,
): readonly AgentScript[] =>
  dotfiles === undefined || no_user_data || api_key_scope === "no_user_data"
    ? scripts
    : [Object.assign(toDotfilesScript(dotfiles), { is_dotfiles: true }), ...scripts];

/** Counts the scripts of all agents. Each needs a log source. */
export const countScripts = ({ resources }: Manifest, ownerInput: OwnerInput): number =>
  resources
    .flatMap(({ agents }) => agents ?? [])
    .reduce((sum, agent) => sum + listScripts(agent, ownerInput).length, 0);

export const sumDailyCost = ({ resources }: Manifest): number =>
  resources.reduce((sum, resource) => sum + (resource.daily_cost ?? 0), 0);

const toResourceRow = (
  id: string,
  resource: ManifestResource,
  { job_id, now, manifest, transition = "start" }: AgentRowsInput,
): Statement =>
  insertResource({
    id,
    job_id,
    transition,
    type: resource.type ?? `${manifest.provisioner}_workspace`,
    name: resource.name,
    icon: toIcon(resource.icon ?? ""),
    hide: resource.hide ?? false,
    daily_cost: resource.daily_cost ?? 0,
    metadata: (resource.metadata ?? []).map(({ key, value, sensitive = false }) => ({
      key,
      // Sensitive values are never shown, so they are not stored.
      value: sensitive ? "" : value,
      sensitive,
    })),
    created_at: now,
  });

const toAgentRow = (
  agent: ManifestAgent,
  { id, token }: { id: string; token: string },
  keysAndOrder: { resource_id: string; key: number; display_order: number },
  { workspace_id, build_id, now, machine, kept, uuid, no_user_data }: AgentRowsInput,
  seal: TextChange,
): Statement =>
  insertAgent({
    ...keysAndOrder,
    id,
    workspace_id,
    build_id,
    name: agent.name,
    token_hash: kept?.get(agent.name) ?? sha256(token),
    // The age of a token that the provisioner has created is unknown, because it may be a token of an earlier build.
    token_made_at: agent.token === undefined ? now : null,
    instance_id: agent.instance_id ?? "",
    api_key_scope: no_user_data ? "no_user_data" : (agent.api_key_scope ?? "all"),
    architecture: agent.arch ?? machine.arch,
    operating_system: agent.os ?? machine.os,
    directory: agent.directory ?? "",
    environment_variables: mapValues(agent.env ?? {}, seal),
    display_apps: agent.display_apps ?? DISPLAY_APPS,
    connection_timeout_seconds: agent.connection_timeout ?? CONNECTION_TIMEOUT_SECONDS,
    troubleshooting_url: toLink(agent.troubleshooting_url ?? ""),
    motd_file: agent.motd_file ?? "",
    devcontainers: (agent.devcontainers ?? []).map(({ name, workspace_folder, config_path = "" }) => ({
      id: uuid(),
      name,
      workspace_folder,
      config_path,
    })),
    created_at: now,
    updated_at: now,
  });

/** Returns the rows of the agent's scripts with their log sources, and of its apps and metadata. */
const toAgentItems = (
  agent: ManifestAgent,
  agent_id: string,
  keys: { source: number },
  input: AgentRowsInput,
  seal: TextChange,
): Statement[] => {
  const { uuid, now, workspace_id } = input;
  const declared = listScripts(agent, input);
  const sources = declared.map((script) => ({
    key: keys.source++,
    agent_id,
    id: uuid(),
    display_name: script.display_name,
    icon: toIcon(script.icon ?? ""),
    created_at: now,
  }));
  const scripts = declared.map((script, index) => ({
    id: uuid(),
    agent_id,
    log_source_id: sources[index]?.id ?? "",
    log_path: script.log_path ?? "",
    display_name: script.display_name,
    script: seal(script.script),
    cron: script.cron ?? "",
    run_on_start: script.run_on_start ?? false,
    run_on_stop: script.run_on_stop ?? false,
    start_blocks_login: script.start_blocks_login ?? false,
    is_dotfiles: script.is_dotfiles ?? false,
    timeout_seconds: script.timeout ?? 0,
    display_order: index,
  }));
  const metadata = (agent.metadata ?? []).map((one, index) => ({
    agent_id,
    key: one.key,
    display_name: one.display_name ?? one.key,
    script: seal(one.script),
    interval: one.interval,
    timeout: one.timeout ?? METADATA_TIMEOUT_SECONDS,
    display_order: index,
  }));
  return [
    ...(sources.length > 0 ? [insertLogSource(sources), insertAgentScript(scripts)] : []),
    // An app that keeps its ID across builds must be deleted before it is inserted again.
    ...(agent.apps ?? []).flatMap((app) => (app.id === undefined ? [] : [releaseApp({ id: app.id, workspace_id })])),
    ...(agent.apps?.length ? [insertAgentApp(toAppRows(agent.apps, agent_id, uuid))] : []),
    ...(metadata.length > 0 ? [insertAgentMetadata(metadata)] : []),
  ];
};

const toAppRows = (apps: NonNullable<ManifestAgent["apps"]>, agent_id: string, uuid: () => string) =>
  apps.map((app, index) => ({
    id: app.id ?? uuid(),
    agent_id,
    slug: app.slug,
    display_name: toLine(app.display_name ?? app.slug),
    command: app.command ?? "",
    // The URL may contain values from users of the template.
    url: toLink(app.url ?? ""),
    external: app.external ?? false,
    subdomain: app.subdomain ?? false,
    hidden: app.hidden ?? false,
    group: toLine(app.group ?? ""),
    icon: toIcon(app.icon ?? ""),
    tooltip: app.tooltip ?? "",
    open_in: app.open_in ?? "slim-window",
    sharing_level: app.share ?? "owner",
    health: app.healthcheck ? "initializing" : "disabled",
    healthcheck_url: app.healthcheck?.url ?? "",
    healthcheck_interval: app.healthcheck?.interval ?? 0,
    healthcheck_threshold: app.healthcheck?.threshold ?? 0,
    display_order: index,
  }));
