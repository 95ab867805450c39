// Finds named apps of a workspace with few reads, since every request to an app needs it. Read only.
import { and, asc, desc, eq, sql } from "drizzle-orm";
import { build, eqParam, query } from "../engine/sql.ts";
import { agent_apps, agents } from "../schema/agents.ts";
import { jobs } from "../schema/jobs.ts";
import { templates } from "../schema/templates.ts";
import { users } from "../schema/users.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

/**
 * A workspace that is not deleted, by its owner's and its own name, with its latest build. Parameters: {username, name},
 * case-insensitive.
 */
export const findNamedWorkspace = query(
  build
    .select({
      id: workspaces.id,
      name: workspaces.name,
      owner_id: workspaces.owner_id,
      organization_id: workspaces.organization_id,
      template_id: workspaces.template_id,
      user_acl: workspaces.user_acl,
      group_acl: workspaces.group_acl,
      dormant_at: workspaces.dormant_at,
      build_id: workspaces.latest_build_id,
      transition: workspace_builds.transition,
      started_at: jobs.started_at,
      completed_at: jobs.completed_at,
      error: jobs.error,
      max_share_level: templates.max_port_share_level,
    })
    .from(users)
    .innerJoin(workspaces, eq(workspaces.owner_id, users.id))
    .innerJoin(templates, eq(templates.id, workspaces.template_id))
    .leftJoin(workspace_builds, eq(workspace_builds.id, workspaces.latest_build_id))
    .leftJoin(jobs, eq(jobs.id, workspace_builds.job_id))
    .where(
      and(
        sql`lower(${users.username}) = lower(${sql.placeholder("username")})`,
        eq(users.deleted, false),
        sql`lower(${workspaces.name}) = lower(${sql.placeholder("name")})`,
        eq(workspaces.deleted, false),
      ),
    )
    .limit(1),
);
const toNamedWorkspace = findNamedWorkspace({ username: "", name: "" }).map;
export type NamedWorkspace = ReturnType<typeof toNamedWorkspace>;

/** The agents of a build that can have apps. Parameters: {build_id}. */
export const listNamedAgents = query(
  build
    .select({ id: agents.id, name: agents.name, parent_id: agents.parent_id })
    .from(agents)
    .where(eqParam(agents.build_id))
    .orderBy(asc(agents.display_order), asc(agents.name)),
);

/** Parameters: {agent_id, slug}, case-insensitive. */
export const findAgentApp = query(
  build
    .select()
    .from(agent_apps)
    .where(and(eqParam(agent_apps.agent_id), sql`lower(${agent_apps.slug}) = lower(${sql.placeholder("slug")})`))
    .limit(1),
);

/** The names in the host names of several agents' apps; `agent_ids` is a JSON array. */
export const listAgentNames = query(
  build
    .select({ agent_id: agents.id, agent: agents.name, workspace: workspaces.name, user: users.username })
    .from(agents)
    .innerJoin(workspaces, eq(workspaces.id, agents.workspace_id))
    .innerJoin(users, eq(users.id, workspaces.owner_id))
    .where(sql`${agents.id} in (select value from json_each(${sql.placeholder("agent_ids")}))`),
);

/** The maximum share levels of several agents' templates; `agent_ids` is a JSON array. */
export const listShareMaximums = query(
  build
    .select({ agent_id: agents.id, max_level: templates.max_port_share_level })
    .from(agents)
    .innerJoin(workspaces, eq(workspaces.id, agents.workspace_id))
    .innerJoin(templates, eq(templates.id, workspaces.template_id))
    .where(sql`${agents.id} in (select value from json_each(${sql.placeholder("agent_ids")}))`),
);

/** How an app was shared in the newest builds of a workspace that had it. Parameters: {workspace_id, slug}, case-insensitive. */
export const listKnownApps = query(
  build
    .select({ agent: agents.name, level: agent_apps.sharing_level })
    .from(agents)
    .innerJoin(agent_apps, eq(agent_apps.agent_id, agents.id))
    .innerJoin(workspace_builds, eq(workspace_builds.id, agents.build_id))
    .where(and(eqParam(agents.workspace_id), sql`lower(${agent_apps.slug}) = lower(${sql.placeholder("slug")})`))
    .orderBy(desc(workspace_builds.build_number))
    .limit(20),
);
