// A workspace or a build as callers see it, read in one join: workspace, owner, organization, template, and build with its job. Used by
// src/api/workspaces and src/api/builds; resources and agents are read separately, by the ID of the build's job.
import { and, eq, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { build, eqParam, query, type RowOf } from "../engine/sql.ts";
import { jobs } from "../schema/jobs.ts";
import { template_versions, templates } from "../schema/templates.ts";
import { organizations, users } from "../schema/users.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

const initiators = alias(users, "initiators");

const columns = {
  workspace: workspaces,
  owner: { username: users.username, name: users.name, avatar_url: users.avatar_url },
  organization: { name: organizations.name },
  template: {
    id: templates.id,
    name: templates.name,
    display_name: templates.display_name,
    icon: templates.icon,
    active_version_id: templates.active_version_id,
    allow_user_cancel_workspace_jobs: templates.allow_user_cancel_workspace_jobs,
    allow_user_autostop: templates.allow_user_autostop,
    default_ttl_ms: templates.default_ttl_ms,
    require_active_version: templates.require_active_version,
    use_classic_parameter_flow: templates.use_classic_parameter_flow,
  },
  template_version: {
    name: template_versions.name,
    has_ai_task: template_versions.has_ai_task,
    has_external_agent: template_versions.has_external_agent,
  },
  build: {
    id: workspace_builds.id,
    build_number: workspace_builds.build_number,
    template_version_id: workspace_builds.template_version_id,
    template_version_preset_id: workspace_builds.template_version_preset_id,
    initiator_id: workspace_builds.initiator_id,
    transition: workspace_builds.transition,
    reason: workspace_builds.reason,
    daily_cost: workspace_builds.daily_cost,
    deadline: workspace_builds.deadline,
    max_deadline: workspace_builds.max_deadline,
    created_at: workspace_builds.created_at,
    updated_at: workspace_builds.updated_at,
  },
  initiator: { username: initiators.username },
  job: {
    key: jobs.key,
    id: jobs.id,
    organization_id: jobs.organization_id,
    initiator_id: jobs.initiator_id,
    type: jobs.type,
    file_id: jobs.file_id,
    input: jobs.input,
    tags: jobs.tags,
    worker_id: jobs.worker_id,
    worker_name: jobs.worker_name,
    error: jobs.error,
    error_code: jobs.error_code,
    created_at: jobs.created_at,
    started_at: jobs.started_at,
    canceled_at: jobs.canceled_at,
    completed_at: jobs.completed_at,
    attempts: jobs.attempts,
    logs_overflowed: jobs.logs_overflowed,
  },
};

/** The join; `on` selects the builds of a workspace. */
export const selectViews = (on: ReturnType<typeof eq>) =>
  build
    .select(columns)
    .from(workspaces)
    .innerJoin(workspace_builds, on)
    .innerJoin(users, eq(users.id, workspaces.owner_id))
    .innerJoin(organizations, eq(organizations.id, workspaces.organization_id))
    .innerJoin(templates, eq(templates.id, workspaces.template_id))
    .innerJoin(template_versions, eq(template_versions.id, workspace_builds.template_version_id))
    .innerJoin(jobs, eq(jobs.id, workspace_builds.job_id))
    .innerJoin(initiators, eq(initiators.id, workspace_builds.initiator_id));

/** The workspace's latest build. */
export const isLatest = eq(workspace_builds.id, workspaces.latest_build_id);

export type WorkspaceView = RowOf<ReturnType<typeof selectViews>>;

/** A workspace with its latest build. Parameters: {id}. */
export const findWorkspaceView = query(selectViews(isLatest).where(eqParam(workspaces.id)));

/** Several workspaces with their latest builds, unordered: {ids}, a JSON array. For `scan`. */
export const listWorkspaceViews = query(
  selectViews(isLatest).where(sql`${workspaces.id} in (select value from json_each(${sql.placeholder("ids")}))`),
);

const isOwn = eq(workspace_builds.workspace_id, workspaces.id);

/** A build with its workspace: {id} is the build's. */
export const findBuildView = query(selectViews(isOwn).where(eqParam(workspace_builds.id)));

/** Several builds of one workspace, unordered: {workspace_id, build_ids}, a JSON array. */
export const listBuildViews = query(
  selectViews(isOwn).where(
    and(
      eq(workspaces.id, sql.placeholder("workspace_id")),
      sql`${workspace_builds.id} in (select value from json_each(${sql.placeholder("build_ids")}))`,
    ),
  ),
);
