// Builds an agent's manifest from its rows on each request (facts/wire 1.5 and 1.6). It contains secrets and must never be logged.
import { notFound } from "#base/errors.ts";
import { uuidToBytes } from "#base/ids.ts";
import { formatLabel } from "#base/links/app-label.ts";
import { mapValues, openSecretTexts, type TextChange } from "#base/secrets/template-secrets.ts";
import { findAgent, findAgentAccessRow } from "#db/agents/agents.ts";
import { type AgentAppRow, listAgentApps } from "#db/agents/apps.ts";
import { listAgentMetadata } from "#db/agents/metadata.ts";
import { type AgentScriptRow, listAgentScripts } from "#db/agents/scripts.ts";
import { makeGatewayEnvironment } from "#domain/ai/environment.ts";
import { type AppHosts, makeAppHosts } from "#domain/applications/names.ts";
import { openSecrets } from "#domain/users/secrets.ts";
import { APP_HEALTHS, SHARING_LEVELS } from "#schema/workspaces/app.ts";
import { buildDerpMap, RELAY_ONLY } from "#src/tailnet/index.ts";
import { type ManifestInit, toDuration, toMetadataDuration } from "#src/wire/index.ts";
import type { ApiContext } from "../../context.ts";
import { toNumber } from "./translate.ts";

type Deps = Pick<ApiContext, "store" | "accessUrl" | "links" | "encryption" | "config">;

/** Returns the manifest of an agent that reaches the server at `server`. Rejects with 404 when the agent no longer exists. */
export const loadManifest = async (
  { store, accessUrl, links, encryption, config }: Deps,
  agent_id: string,
  server: URL,
): Promise<ManifestInit> => {
  const [agent, access, apps, scripts, metadata] = await Promise.all([
    store.get(findAgent({ id: agent_id })),
    store.get(findAgentAccessRow({ id: agent_id })),
    store.all(listAgentApps({ agent_id })),
    store.all(listAgentScripts({ agent_id })),
    store.all(listAgentMetadata({ agent_id })),
  ]);
  if (!agent || !access) throw notFound();
  const decrypt = openSecretTexts(encryption, agent_id);
  // An agent without access to its owner's data gets no secrets either.
  const hasOwnerAccess = agent.api_key_scope === "all";
  const secrets = hasOwnerAccess ? await openSecrets({ store, encryption }, access.owner_id) : [];
  const ownNames = [...Object.keys(agent.environment_variables), ...secrets.map(({ env_name }) => env_name)];
  const gatewayVariables = hasOwnerAccess
    ? await makeGatewayEnvironment({ store, encryption }, agent_id, { server, own: ownNames })
    : {};
  return {
    agentId: uuidToBytes(agent_id),
    agentName: agent.name,
    // Absent unless there is a parent (facts/wire 1.5, trap 4).
    ...(agent.parent_id === null ? {} : { parentId: uuidToBytes(agent.parent_id) }),
    ownerUsername: access.owner_username,
    workspaceId: uuidToBytes(access.workspace_id),
    workspaceName: access.workspace_name,
    // Tells upstream agents whether to set up git's credential prompt.
    gitAuthConfigs: links.providers.size,
    environmentVariables: { ...gatewayVariables, ...mapValues(agent.environment_variables, decrypt) },
    directory: agent.directory,
    vsCodePortProxyUri: formatPortUrl(makeAppHosts({ config, accessUrl }), agent.name, access),
    motdPath: agent.motd_file,
    // All traffic goes through the server's relay.
    disableDirectConnections: RELAY_ONLY.disable_direct_connections,
    derpForceWebsockets: RELAY_ONLY.derp_force_websockets,
    derpMap: buildDerpMap(accessUrl),
    apps: apps.map(toApp),
    scripts: scripts.map((script) => toScript(script, decrypt)),
    devcontainers: agent.devcontainers.map(({ id, name, workspace_folder, config_path }) => ({
      id: uuidToBytes(id),
      name,
      workspaceFolder: workspace_folder,
      configPath: config_path,
    })),
    secrets: secrets.map(({ env_name, file_path, value }) => ({
      envName: env_name,
      filePath: file_path,
      value: new TextEncoder().encode(value),
    })),
    metadata: metadata.map(({ display_name, key, script, interval, timeout }) => ({
      displayName: display_name,
      key,
      script: decrypt(script),
      interval: toMetadataDuration(interval),
      timeout: toMetadataDuration(timeout),
    })),
  };
};

type WorkspaceNames = { readonly workspace_name: string; readonly owner_username: string };

/**
 * Returns the URL at which an editor in the workspace finds its ports, with `{{port}}` in place of the number. Empty when ports have no
 * hosts of their own.
 */
const formatPortUrl = (hosts: AppHosts, agent: string, { workspace_name, owner_username }: WorkspaceNames): string => {
  // The longest port number: if the label is valid with it, it is valid with every port.
  const app = "65535";
  const label = formatLabel({ app, agent, workspace: workspace_name, user: owner_username });
  return hosts.wildcard && label ? hosts.toOrigin(label.replace(app, "{{port}}")) : "";
};

const toApp = (app: AgentAppRow): NonNullable<ManifestInit["apps"]>[number] => ({
  id: uuidToBytes(app.id),
  slug: app.slug,
  displayName: app.display_name,
  url: app.url,
  external: app.external,
  command: app.command,
  icon: app.icon,
  subdomain: app.subdomain,
  hidden: app.hidden,
  // All three fields must be present and valid (facts/wire 1.5, trap 2).
  sharingLevel: toNumber(SHARING_LEVELS, app.sharing_level, 1),
  health: toNumber(APP_HEALTHS, app.health, 1),
  healthcheck: {
    url: app.healthcheck_url,
    interval: toDuration(app.healthcheck_interval),
    threshold: app.healthcheck_threshold,
  },
});

const toScript = (script: AgentScriptRow, decrypt: TextChange): NonNullable<ManifestInit["scripts"]>[number] => ({
  id: uuidToBytes(script.id),
  logSourceId: uuidToBytes(script.log_source_id),
  logPath: script.log_path,
  displayName: script.display_name,
  script: decrypt(script.script),
  cron: script.cron,
  runOnStart: script.run_on_start,
  runOnStop: script.run_on_stop,
  startBlocksLogin: script.start_blocks_login,
  timeout: toDuration(script.timeout_seconds),
  isDotfiles: script.is_dotfiles,
});
