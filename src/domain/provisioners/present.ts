// Presents a worker: its capabilities and its current job. The workspace's name is shown only to users who can see it.
import { toRfc3339 } from "#base/clock.ts";
import {
  listProvisionerDaemons,
  listProvisionerKeys,
  type ProvisionerDaemonRow,
  type ProvisionerKeyRow,
} from "#db/templates/provisioners.ts";
import { findTemplate } from "#db/templates/templates.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import { findUser } from "#db/users/users.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type {
  CurrentJob,
  ProvisionerDaemon,
  ProvisionerKey,
  ProvisionerKeyDaemons,
} from "#schema/templates/provisioner.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canSeeWorkspace } from "../access.ts";
import type { DomainContext } from "../context.ts";

type Deps = Pick<DomainContext, "store" | "workers" | "clock">;

export const presentKey = async (
  { store }: Pick<Deps, "store">,
  { id, organization_id, name, tags, created_by, created_at }: ProvisionerKeyRow,
): Promise<ProvisionerKey> => ({
  id,
  organization_id,
  name,
  tags,
  created_by,
  created_by_name: (await store.get(findUser({ id: created_by })))?.username ?? "",
  created_at: toRfc3339(created_at),
});

/** Returns all keys of the organization, oldest first, with the workers that use them. */
export const listKeyDaemons = async (
  deps: Deps,
  organization_id: string,
  caller: UserCaller,
): Promise<ProvisionerKeyDaemons[]> => {
  const keys = await deps.store.all(listProvisionerKeys({ organization_id }));
  const rows = await deps.store.all(listProvisionerDaemons({ organization_id }));
  const daemons = await Promise.all(rows.map((row) => presentDaemon(deps, row, caller)));
  return Promise.all(
    keys.map(async (key) => ({
      key: await presentKey(deps, key),
      daemons: daemons.filter(({ key_id }) => key_id === key.id),
    })),
  );
};

export const presentDaemon = async (
  deps: Deps,
  row: ProvisionerDaemonRow,
  caller: UserCaller,
): Promise<ProvisionerDaemon> => {
  const worker = deps.workers.find(row.id);
  const job = worker?.jobs[0];
  const { id, organization_id, key_id, name, version, provisioners, tags, slots } = row;
  return {
    id,
    organization_id,
    key_id,
    name,
    version,
    provisioners,
    tags,
    slots,
    status: worker ? (job ? "busy" : "idle") : "offline",
    current_job: job === undefined ? null : await presentJob(deps, job, caller),
    created_at: toRfc3339(row.created_at),
    last_seen_at: toRfc3339(worker ? deps.clock.now() - Math.round(worker.silence_ms) : row.last_seen_at),
  };
};

const presentJob = async ({ store }: Deps, id: string, caller: UserCaller): Promise<CurrentJob> => {
  const job = await store.get(findJob({ id }));
  const { workspace_build_id, template_version_id } = job?.input ?? {};
  const build = workspace_build_id ? await store.get(findBuild({ id: workspace_build_id })) : undefined;
  const workspace = build ? await store.get(findWorkspaceAccessRow({ id: build.workspace_id })) : undefined;
  const visibleWorkspace = workspace && canSeeWorkspace(caller, workspace) ? workspace : undefined;
  const version = template_version_id ? await store.get(findTemplateVersion({ id: template_version_id })) : undefined;
  const template_id = workspace?.template_id ?? version?.template_id ?? undefined;
  const template = template_id ? await store.get(findTemplate({ id: template_id })) : undefined;
  return {
    id,
    status: "running",
    type: job?.type ?? "workspace_build",
    workspace_id: visibleWorkspace?.id ?? null,
    workspace_name: visibleWorkspace?.name ?? "",
    template_name: template?.name ?? "",
    started_at: job?.started_at ? toRfc3339(job.started_at) : null,
  };
};
