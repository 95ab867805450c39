// Presents builds.
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import type { Store } from "#db/engine/store.ts";
import type { WorkspaceView } from "#db/workspaces/views.ts";
import { type BUILD_REASONS, type Build, buildStatus } from "#schema/workspaces/build.ts";
import { toJobStatus } from "#schema/workspaces/job.ts";
import type { Resource } from "#schema/workspaces/resource.ts";
import { makeAgentView } from "../agents/present.ts";
import type { DomainContext } from "../context.ts";
import { matchProvisioners, presentJob, type Queue } from "./job.ts";
import { loadResources } from "./resources.ts";

/** Presents builds with their resources, in the given order. */
export const presentBuilds = async (
  ctx: DomainContext,
  views: readonly WorkspaceView[],
  compat: boolean,
  store: Pick<Store, "all"> = ctx.store,
): Promise<Build[]> => {
  const jobs = views.map(({ job }) => job);
  const resources = await loadResources(makeAgentView(ctx, { compat }, store), jobs);
  return views.map((view) => presentBuild(view, resources.get(view.job.id) ?? [], ctx.jobs));
};

export const presentBuild = (view: WorkspaceView, resources: Resource[], queue: Queue): Build => {
  const { workspace, owner, template, template_version, build, job, initiator } = view;
  const metadata = {
    template_version_name: template_version.name,
    template_id: template.id,
    template_name: template.name,
    template_display_name: template.display_name,
    template_icon: template.icon,
    workspace_id: workspace.id,
    workspace_name: workspace.name,
    workspace_build_transition: build.transition,
  };
  return {
    id: build.id,
    created_at: toRfc3339(build.created_at),
    updated_at: toRfc3339(build.updated_at),
    workspace_id: workspace.id,
    workspace_name: workspace.name,
    workspace_owner_id: workspace.owner_id,
    workspace_owner_name: owner.username,
    workspace_owner_avatar_url: owner.avatar_url || undefined,
    template_version_id: build.template_version_id,
    template_version_name: template_version.name,
    template_version_preset_id: build.template_version_preset_id ?? undefined,
    build_number: build.build_number,
    transition: build.transition,
    initiator_id: build.initiator_id,
    initiator_name: initiator.username,
    job: presentJob(job, metadata, queue),
    reason: build.reason as (typeof BUILD_REASONS)[number],
    resources,
    deadline: toOptionalRfc3339(build.deadline),
    max_deadline: toOptionalRfc3339(build.max_deadline),
    status: buildStatus(toJobStatus(job), build.transition),
    daily_cost: build.daily_cost,
    // As of the build's creation (facts/platform 2.1).
    matched_provisioners: matchProvisioners(job.tags, queue, build.created_at),
    has_ai_task: template_version.has_ai_task,
    has_external_agent: template_version.has_external_agent,
  };
};
