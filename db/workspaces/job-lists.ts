// Provisioner jobs of an organization for lists, newest first, with what they are about.
import { and, desc, eq, sql } from "drizzle-orm";
import { build, eqParam, query, type RowOfQuery } from "../engine/sql.ts";
import { jobs } from "../schema/jobs.ts";
import { template_versions, templates } from "../schema/templates.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

const version_id = sql`json_extract(${jobs.input}, '$.template_version_id')`;
const build_id = sql`json_extract(${jobs.input}, '$.workspace_build_id')`;

const selectJobs = () =>
  build
    .select({
      job: jobs,
      template: { id: templates.id, name: templates.name, display_name: templates.display_name, icon: templates.icon },
      version: { name: template_versions.name },
      workspace: { id: workspaces.id, name: workspaces.name },
    })
    .from(jobs)
    .leftJoin(workspace_builds, eq(workspace_builds.id, build_id))
    .leftJoin(workspaces, eq(workspaces.id, workspace_builds.workspace_id))
    .leftJoin(
      template_versions,
      sql`${template_versions.id} = coalesce(${workspace_builds.template_version_id}, ${version_id})`,
    )
    .leftJoin(templates, eq(templates.id, template_versions.template_id));

/** Parameters: {organization_id, initiator (id or empty: all), limit}. For `scan`. */
export const listJobsByOrganization = query(
  selectJobs()
    .where(
      and(
        eqParam(jobs.organization_id),
        sql`(${sql.placeholder("initiator")} = '' or ${jobs.initiator_id} = ${sql.placeholder("initiator")})`,
      ),
    )
    .orderBy(desc(jobs.created_at), desc(jobs.id))
    .limit(sql.placeholder("limit")),
);

/** Parameters: {organization_id, id}. */
export const findJobInOrganization = query(selectJobs().where(and(eqParam(jobs.organization_id), eqParam(jobs.id))));
export type ListedJob = RowOfQuery<typeof findJobInOrganization>;
