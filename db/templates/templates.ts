// Templates. A deleted one keeps its row, because deleted workspaces reference it; its name becomes available again.
import { and, asc, desc, eq, isNotNull, sql } from "drizzle-orm";
import type { Acl } from "#schema/workspaces/acl.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { build, eqParam, findBy, insertInto, query, type Statement, statement, updateBy } from "../engine/sql.ts";
import { jobs } from "../schema/jobs.ts";
import { template_versions, templates } from "../schema/templates.ts";
import { organizations, users } from "../schema/users.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

export type TemplateRow = typeof templates.$inferSelect;

const isNotDeleted = eq(templates.deleted, false);

/** A template that is not deleted. Parameters: {id}. */
export const findTemplate = query(
  build
    .select()
    .from(templates)
    .where(and(eqParam(templates.id), isNotDeleted)),
);

/** A template, even if deleted, for what remains of its workspaces. Parameters: {id}. */
export const findTemplateEvenDeleted = findBy(templates, templates.id);

/** By name within an organization, case-insensitive. Parameters: {organization_id, name}. */
export const findTemplateByName = query(
  build
    .select()
    .from(templates)
    .where(
      and(
        eqParam(templates.organization_id),
        sql`lower(${templates.name}) = lower(${sql.placeholder("name")})`,
        isNotDeleted,
      ),
    ),
);

/** Distinct owners of workspaces that are not deleted, excluding prebuilds. */
const activeUsers = sql<number>`(select count(distinct ${workspaces.owner_id}) from ${workspaces}
  where ${workspaces.template_id} = ${templates.id} and ${workspaces.deleted} = 0
  and ${workspaces.owner_id} <> ${PREBUILDS_USER_ID})`;

const viewColumns = {
  template: templates,
  organization: {
    name: organizations.name,
    display_name: organizations.display_name,
    icon: organizations.icon,
  },
  creator: { username: users.username },
  use: { active_user_count: activeUsers },
  /** 1 when its active version declares an AI task. */
  has_ai_task: sql<number>`exists (select 1 from ${template_versions} where ${template_versions.id} = ${templates.active_version_id}
    and ${template_versions.has_ai_task} = 1)`,
  /** 1 when its active version contains a module that copies disks. */
  has_snapshot_module: sql<number>`exists (select 1 from ${template_versions} where ${template_versions.id} = ${templates.active_version_id}
    and ${template_versions.has_snapshot_module} = 1)`,
};

/** A template with the related data of its answer. Parameters: {id}. */
export const findTemplateShown = query(
  build
    .select(viewColumns)
    .from(templates)
    .innerJoin(organizations, eq(organizations.id, templates.organization_id))
    .innerJoin(users, eq(users.id, templates.created_by))
    .where(and(eqParam(templates.id), isNotDeleted)),
);
const toTemplateView = findTemplateShown({ id: "" }).map;
export type TemplateView = ReturnType<typeof toTemplateView>;

/** All templates by name. The caller must filter by access. */
export const listTemplates = query(
  build
    .select(viewColumns)
    .from(templates)
    .innerJoin(organizations, eq(organizations.id, templates.organization_id))
    .innerJoin(users, eq(users.id, templates.created_by))
    .where(isNotDeleted)
    .orderBy(asc(sql`lower(${templates.name})`), asc(templates.id))
    .limit(10_000),
);

/** The access lists of templates that have one. */
export const listTemplateAccess = query(
  build
    .select({
      organization_id: templates.organization_id,
      user_acl: templates.user_acl,
      group_acl: templates.group_acl,
    })
    .from(templates)
    .where(and(isNotDeleted, sql`(${templates.user_acl} <> '{}' or ${templates.group_acl} is not null)`))
    .limit(10_000),
);

/** Number of workspaces of the template that are not deleted. Parameters: {id}. */
export const countWorkspacesByTemplate = query(
  build
    .select({ count: sql<number>`count(*)` })
    .from(workspaces)
    .where(and(eq(workspaces.template_id, sql.placeholder("id")), eq(workspaces.deleted, false))),
);

/** Owners of the template's workspaces. Parameters: {id}. */
export const listWorkspaceOwnersByTemplate = query(
  build
    .selectDistinct({ owner_id: workspaces.owner_id })
    .from(workspaces)
    .where(and(eq(workspaces.template_id, sql.placeholder("id")), eq(workspaces.deleted, false))),
);

/** Milliseconds that each of the newest successful builds took, by transition. Parameters: {id}. For `scan`. */
export const listBuildTimes = query(
  build
    .select({
      transition: workspace_builds.transition,
      milliseconds: sql<number>`${jobs.completed_at} - ${jobs.started_at}`,
    })
    .from(workspaces)
    .innerJoin(workspace_builds, eq(workspace_builds.workspace_id, workspaces.id))
    .innerJoin(jobs, eq(jobs.id, workspace_builds.job_id))
    .where(
      and(
        eq(workspaces.template_id, sql.placeholder("id")),
        isNotNull(jobs.completed_at),
        isNotNull(jobs.started_at),
        eq(jobs.error, ""),
        sql`${jobs.canceled_at} is null`,
      ),
    )
    .orderBy(desc(jobs.completed_at))
    .limit(500),
);

/** Marks it as deleted. Rejected as stale when it already is, or when it has workspaces. Parameters: {id, now}. */
export const deleteTemplate = statement<{ id: string; now: number }>(
  build
    .update(templates)
    .set({ deleted: true, updated_at: sql.placeholder("now") as never })
    .where(
      and(
        eqParam(templates.id),
        isNotDeleted,
        sql`not exists (select 1 from ${workspaces} where ${workspaces.template_id} = ${templates.id} and ${workspaces.deleted} = 0)`,
      ),
    ),
  { expect: 1, alone: "templates" },
);

/** A guard for creating a workspace: rejects the batch as stale when the template is deleted. Parameters: {id}. */
export const guardTemplate = statement<{ id: string }>(
  build
    .update(templates)
    .set({ deleted: false })
    .where(and(eqParam(templates.id), isNotDeleted)),
  { expect: 1, alone: "templates" },
);

const writeAccess = statement<{
  id: string;
  user_before: Acl;
  group_before: Acl | null;
  user_acl: Acl;
  group_acl: Acl;
  updated_at: number;
}>(
  build
    .update(templates)
    .set({
      user_acl: sql.placeholder("user_acl") as never,
      group_acl: sql.placeholder("group_acl") as never,
      updated_at: sql.placeholder("updated_at") as never,
    })
    .where(
      and(
        eqParam(templates.id),
        isNotDeleted,
        sql`${templates.user_acl} = ${sql.param(sql.placeholder("user_before"), templates.user_acl)}`,
        sql`coalesce(${templates.group_acl}, '') = coalesce(${sql.param(sql.placeholder("group_before"), templates.group_acl)}, '')`,
      ),
    ),
  { expect: 1 },
);

/** Replaces the access list. Rejected as stale when it has changed since it was read. */
export const setTemplateAccess = (
  { id, user_acl, group_acl }: Pick<TemplateRow, "id" | "user_acl" | "group_acl">,
  next: { readonly user_acl: Acl; readonly group_acl: Acl; readonly updated_at: number },
): Statement => writeAccess({ id, user_before: user_acl, group_before: group_acl, ...next });

/** Parameters: {organization_id}. For `scan`. */
export const listTemplatesByOrganization = query(
  build
    .select()
    .from(templates)
    .where(and(eqParam(templates.organization_id), isNotDeleted))
    .limit(10_000),
);

/** Templates of the organization whose access list contains the person. Parameters: {organization_id, user_id}. For `scan`. */
export const listTemplatesGivenTo = query(
  build
    .select({ id: templates.id })
    .from(templates)
    .where(
      and(
        eqParam(templates.organization_id),
        isNotDeleted,
        sql`exists (select 1 from json_each(${templates.user_acl}) e where e.key = ${sql.placeholder("user_id")})`,
      ),
    )
    .limit(10_000),
);

export const insertTemplate = insertInto(templates);
export const updateTemplate = updateBy(templates, templates.id);
