// Plans a build: the worker's request, and the rows of the resources that the build will create. Only reads the store. Runs inside a
// message of the workspace, so that the workspace cannot change at the same time.
import { arch, platform } from "node:os";
import type { Encryption } from "#base/encryption.ts";
import { uuid } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { openDefaults, openVariables } from "#db/templates/variables.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import { findDotfilesToInstall } from "#db/users/users.ts";
import { openState } from "#db/workspaces/build-state.ts";
import { type BuildRow, listBuildParameters } from "#db/workspaces/builds.ts";
import { openSnapshotValue } from "#db/workspaces/snapshot-state.ts";
import { findWorkspaceOwner } from "#db/workspaces/workspaces.ts";
import type { Manifest, ManifestVariable } from "#schema/templates/manifest.ts";
import { resolveVariables } from "#src/provisioners/parameters.ts";
import type { ProvisionedResources, ProvisionRequest } from "#src/provisioners/provisioner.ts";
import { renderManifest } from "#src/provisioners/render.ts";
import { type AgentRowsInput, buildAgentRows, type CreatedAgents, countScripts, sumDailyCost } from "./agent-rows.ts";
import type { WorkspaceState } from "./decision.ts";

export type Plan = {
  /** Contains secrets, so it must never be logged. */
  readonly request: ProvisionRequest;
  readonly rows: readonly Statement[];
  readonly agent_ids: readonly string[];
  /** Undefined if only the build determines the cost. */
  readonly daily_cost: number | undefined;
};

type PlanInput = {
  /** Parameters of a build that is not stored yet. */
  readonly parameters?: readonly { readonly name: string; readonly value: string }[];
  /** For a claim: digests of the running daemons' tokens by agent name (rule PB-8). */
  readonly kept?: ReadonlyMap<string, string>;
  /** The agents that a claim has already created. */
  readonly made?: readonly { readonly id: string; readonly name: string }[];
};

export type PlanDeps = { readonly store: Store; readonly encryption: Encryption };

/** Returns the plan of the latest build. Every call for a start creates new agents and tokens, unless a claim has created them. */
export const planBuild = async (
  { store, encryption }: PlanDeps,
  { workspace, build }: WorkspaceState,
  now: number,
  access_url: string,
  input: PlanInput = {},
): Promise<Plan> => {
  const version = await store.get(findTemplateVersion({ id: build.template_version_id }));
  const owner = await store.get(findWorkspaceOwner({ id: workspace.owner_id }));
  if (!version?.manifest || !owner) throw new Error(`build ${build.id} has no template or owner`);
  const source = JSON.parse(version.manifest) as Manifest;
  const values = input.parameters ?? (await store.all(listBuildParameters({ build_id: build.id })));
  const parameters = Object.fromEntries(values.map(({ name, value }) => [name, value]));
  const declared = openDefaults(encryption, version.id, source.variables ?? []);
  const variables = resolveVariables(declared, openVariables(encryption, version)).values;
  const { id, name } = workspace;
  // Terraform fills in its own texts, and only its state contains the agents.
  const isTerraform = source.provisioner === "terraform";
  const manifest = isTerraform
    ? source
    : renderManifest(source, { parameters, variables, workspace: { id, name }, owner }, build.transition === "start");
  const ownerInput = await loadOwnerInput(store, workspace, build);
  let created: Omit<CreatedAgents, "daily_cost"> & Pick<Plan, "daily_cost">;
  if (isTerraform || input.made || build.transition !== "start") {
    const agents = (input.made ?? []).map((agent) => ({ id: agent.id, name: agent.name, token: "" }));
    const manifestCost = input.made ? sumDailyCost(manifest) : 0;
    created = { rows: [], agents, daily_cost: isTerraform ? undefined : manifestCost };
  } else {
    const secrets = listSecrets(source.variables ?? [], variables);
    const options = { ...ownerInput, secrets, ...(input.kept ? { kept: input.kept } : {}) };
    created = await reserveAndBuildRows({ store, encryption }, build, manifest, now, options);
  }
  return {
    request: {
      job_id: build.job_id,
      build_id: build.id,
      build_number: build.build_number,
      transition: build.transition,
      workspace: { id, name },
      owner,
      manifest,
      parameters,
      agents: created.agents,
      access_url,
      state: openState(encryption, id, build.state),
      ...(input.made ? { claimed: true } : {}),
      ...readRestore(build),
      ...readSnapshotValue(encryption, build),
      ...(build.kept_ms === null ? {} : { keeps_files: true }),
      ...(build.no_user_data ? { no_user_data: true } : {}),
    },
    rows: created.rows,
    agent_ids: created.agents.map((agent) => agent.id),
    daily_cost: created.daily_cost,
  };
};

const readRestore = ({ restored_snapshot_id, restored_workspace_id }: BuildRow): Pick<ProvisionRequest, "restore"> =>
  restored_snapshot_id && restored_workspace_id
    ? { restore: { snapshot_id: restored_snapshot_id, workspace_id: restored_workspace_id } }
    : {};

const readSnapshotValue = (
  encryption: Encryption,
  { workspace_id, sealed_snapshot_value }: BuildRow,
): Pick<ProvisionRequest, "snapshot_value"> => {
  const snapshot_value = openSnapshotValue(encryption, workspace_id, sealed_snapshot_value);
  return snapshot_value === undefined ? {} : { snapshot_value };
};

const listSecrets = (declared: readonly ManifestVariable[], values: Readonly<Record<string, string>>): string[] =>
  declared.flatMap(({ name, sensitive }) => (sensitive ? [values[name] ?? ""] : []));

/** Returns the rows of the resources that a provisioner has created, for provisioners that know their agents only after the build. */
export const buildCreatedRows = async (
  deps: PlanDeps,
  { workspace, build }: Pick<WorkspaceState, "workspace" | "build">,
  created: ProvisionedResources,
  now: number,
): Promise<Pick<Plan, "rows" | "agent_ids"> & { readonly daily_cost: number }> => {
  const manifest: Manifest = { provisioner: "terraform", resources: [...created.resources] };
  const ownerInput = await loadOwnerInput(deps.store, workspace, build);
  const transition = build.transition === "stop" ? "stop" : "start";
  const options = { ...ownerInput, secrets: created.secrets, transition } as const;
  const { rows, agents } = await reserveAndBuildRows(deps, build, manifest, now, options);
  return { rows, agent_ids: agents.map(({ id }) => id), daily_cost: created.daily_cost };
};

/** Reserves the keys of the agents and their log sources, and returns the rows. */
const reserveAndBuildRows = async (
  { store, encryption }: PlanDeps,
  { id: build_id, workspace_id, job_id }: BuildRow,
  manifest: Manifest,
  now: number,
  options: Pick<AgentRowsInput, "secrets" | "kept" | "transition" | "no_user_data" | "dotfiles">,
): Promise<CreatedAgents> =>
  buildAgentRows({
    ...options,
    manifest,
    now,
    workspace_id,
    build_id,
    job_id,
    agent_key: await store.reserve("agents", countAgents(manifest) || 1),
    source_key: await store.reserve("log_sources", countScripts(manifest, options) || 1),
    machine: getDefaultSystem(),
    uuid,
    encryption,
  });

const countAgents = (manifest: Manifest): number => manifest.resources.flatMap(({ agents }) => agents ?? []).length;

/** Loads the owner's data for the agents. */
const loadOwnerInput = async (
  store: Store,
  { owner_id, template_id }: WorkspaceState["workspace"],
  { no_user_data }: BuildRow,
) => ({
  no_user_data,
  dotfiles: no_user_data ? undefined : await store.get(findDotfilesToInstall({ owner_id, template_id })),
});

/** Returns the system of agents for which the template names none: the system of this machine. */
const getDefaultSystem = (): { os: string; arch: string } => ({
  os: platform() === "win32" ? "windows" : platform(),
  arch: arch() === "x64" ? "amd64" : arch(),
});
