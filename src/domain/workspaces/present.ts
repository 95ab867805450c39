// Presents a workspace.
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import type { Store } from "#db/engine/store.ts";
import { findWorkspaceView, type WorkspaceView } from "#db/workspaces/views.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { nullableUuid } from "#schema/nullable-uuid.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { AppStatus } from "#schema/workspaces/app.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import type { Resource } from "#schema/workspaces/resource.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { makeAgentView } from "../agents/present.ts";
import { presentBuild } from "../builds/present.ts";
import { loadResources } from "../builds/resources.ts";
import type { DomainContext } from "../context.ts";
import { listSharedWith, loadSubjects, type Subjects } from "./shared-with.ts";

/** Returns the whole workspace; undefined when it does not exist. The caller's access must have been checked. */
export const readWorkspace = async (ctx: DomainContext, id: string, viewer: Viewer): Promise<Workspace | undefined> => {
  const view = await ctx.store.get(findWorkspaceView({ id }));
  return view && (await presentWorkspaces(ctx, [view], viewer))[0];
};

/** The viewer: favorites are personal to the owner, and upstream clients get plain nullable UUIDs. */
export type Viewer = Pick<UserCaller, "user_id" | "compat">;

/** Presents workspaces with their resources and agents, in the given order. */
export const presentWorkspaces = async (
  ctx: DomainContext,
  views: readonly WorkspaceView[],
  viewer: Viewer,
  store: Pick<Store, "all"> = ctx.store,
): Promise<Workspace[]> => {
  const jobs = views.map(({ job }) => job);
  const resources = await loadResources(makeAgentView(ctx, viewer, store), jobs);
  const subjects = await loadSubjects(
    store,
    views.map(({ workspace }) => workspace),
  );
  return views.map((view) => presentWorkspace(view, resources.get(view.job.id) ?? [], subjects, viewer, ctx));
};

const presentWorkspace = (
  view: WorkspaceView,
  resources: Resource[],
  subjects: Subjects,
  viewer: Viewer,
  { jobs, config }: Pick<DomainContext, "jobs" | "config">,
): Workspace => {
  const { workspace, owner, organization, template, build } = view;
  const agents = resources.flatMap((resource) => resource.agents);
  return {
    id: workspace.id,
    created_at: toRfc3339(workspace.created_at),
    updated_at: toRfc3339(workspace.updated_at),
    owner_id: workspace.owner_id,
    owner_name: owner.username,
    owner_avatar_url: owner.avatar_url,
    organization_id: workspace.organization_id,
    organization_name: organization.name,
    template_id: template.id,
    template_name: template.name,
    template_display_name: template.display_name,
    template_icon: template.icon,
    template_allow_user_cancel_workspace_jobs: template.allow_user_cancel_workspace_jobs,
    template_active_version_id: template.active_version_id,
    template_require_active_version: template.require_active_version,
    template_use_classic_parameter_flow: template.use_classic_parameter_flow,
    latest_build: presentBuild(view, resources, jobs),
    latest_app_status: findLatestStatus(agents),
    outdated: build.template_version_id !== template.active_version_id,
    name: workspace.name,
    autostart_schedule: workspace.autostart_schedule ?? undefined,
    ttl_ms: (template.allow_user_autostop ? workspace.ttl_ms : template.default_ttl_ms) || undefined,
    last_used_at: toRfc3339(workspace.last_used_at),
    deleting_at: toOptionalRfc3339(workspace.deleting_at),
    dormant_at: toOptionalRfc3339(workspace.dormant_at),
    next_start_at: toOptionalRfc3339(workspace.next_start_at),
    health: toHealth(agents),
    automatic_updates: workspace.automatic_updates,
    allow_renames: config.allow_workspace_renames,
    favorite: workspace.favorite && workspace.owner_id === viewer.user_id,
    is_prebuild: workspace.owner_id === PREBUILDS_USER_ID,
    shared_with: listSharedWith(workspace, subjects),
    task_id: nullableUuid(workspace.task_id, viewer.compat),
  };
};

/** Healthy when every agent without a parent is (facts/platform 2.4). */
const toHealth = (agents: readonly WorkspaceAgent[]): Workspace["health"] => {
  const failing = agents.filter((agent) => isTopLevel(agent) && !agent.health.healthy).map(({ id }) => id);
  return { healthy: failing.length === 0, failing_agents: failing };
};

export const isTopLevel = ({ parent_id }: WorkspaceAgent): boolean =>
  parent_id === null || (typeof parent_id === "object" && !parent_id.valid);

/** Returns the newest status of all apps; null when none exists. */
const findLatestStatus = (agents: readonly WorkspaceAgent[]): AppStatus | null => {
  let newest: AppStatus | null = null;
  for (const { apps } of agents) {
    for (const { statuses } of apps) {
      for (const status of statuses) if (!newest || status.created_at > newest.created_at) newest = status;
    }
  }
  return newest;
};
