// Versions of templates. Written by the template-version actor; the row names the template.
import { and, asc, desc, eq, getTableColumns, isNull, type SQL, sql } from "drizzle-orm";
import type { Manifest } from "#schema/templates/manifest.ts";
import { build, eqParam, findBy, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { forOwnRows, isOwn } from "../own-rows.ts";
import { jobs } from "../schema/jobs.ts";
import { template_versions, templates } from "../schema/templates.ts";
import { users } from "../schema/users.ts";

export type TemplateVersionRow = typeof template_versions.$inferSelect;

/** A complete version with its stored manifest (JSON text, null until the import has succeeded). Parameters: {id}. */
export const findTemplateVersion = findBy(template_versions, template_versions.id);

const { manifest: _manifest, ...light } = getTableColumns(template_versions);

const viewColumns = {
  version: light,
  creator: { id: users.id, username: users.username, name: users.name, avatar_url: users.avatar_url },
  job: jobs,
  template: {
    id: templates.id,
    name: templates.name,
    display_name: templates.display_name,
    icon: templates.icon,
    deleted: templates.deleted,
    organization_id: templates.organization_id,
    user_acl: templates.user_acl,
    group_acl: templates.group_acl,
  },
};

const selectShown = () =>
  build
    .select(viewColumns)
    .from(template_versions)
    .innerJoin(users, eq(users.id, template_versions.created_by))
    .innerJoin(jobs, eq(jobs.id, template_versions.job_id))
    .leftJoin(templates, eq(templates.id, template_versions.template_id));

/** A version with its job, its creator and its template, as in its answer. Parameters: {id}. */
export const findVersionShown = query(selectShown().where(eqParam(template_versions.id)));
const toVersionView = findVersionShown({ id: "" }).map;
export type VersionView = ReturnType<typeof toVersionView>;

/** By name within a template. Parameters: {template_id, name}. */
export const findVersionByName = query(
  selectShown().where(and(eqParam(template_versions.template_id), eqParam(template_versions.name))),
);

/** The version of this template before this one. Parameters: {template_id, id}. */
export const findVersionBefore = query(
  selectShown()
    .where(
      and(
        eqParam(template_versions.template_id),
        sql`(${template_versions.created_at}, ${template_versions.id}) <
          (select v.created_at, v.id from template_versions v where v.id = ${sql.placeholder("id")})`,
      ),
    )
    .orderBy(desc(template_versions.created_at), desc(template_versions.id))
    .limit(1),
);

/**
 * The IDs of versions of a template, oldest first: {template_id, archived, after, limit, offset}. `archived` 1 includes archived ones,
 * `after` is a version's ID or empty, `limit` -1 means no limit.
 */
export const listVersionIds = query(
  build
    .select({ id: template_versions.id })
    .from(template_versions)
    .where(
      and(
        eqParam(template_versions.template_id),
        sql`(${template_versions.archived} = 0 or ${sql.placeholder("archived")} = 1)`,
        sql`(${sql.placeholder("after")} = '' or (${template_versions.created_at}, ${template_versions.id}) >
          (select v.created_at, v.id from template_versions v where v.id = ${sql.placeholder("after")}))`,
      ),
    )
    .orderBy(asc(template_versions.created_at), asc(template_versions.id))
    .limit(sql.placeholder("limit"))
    .offset(sql.placeholder("offset")),
);

/** Versions by ID: {ids}, as JSON. For `scan`. */
export const listVersionsById = query(
  selectShown().where(sql`${template_versions.id} in (select value from json_each(${sql.placeholder("ids")}))`),
);

/**
 * Unused versions of a template: not archived, not active, and not used by the latest build of any existing workspace. With `all` 0, only
 * those whose import failed or was canceled: {template_id, all}. For `scan`.
 */
export const listUnusedVersions = query(
  build
    .select({ id: template_versions.id })
    .from(template_versions)
    .innerJoin(jobs, eq(jobs.id, template_versions.job_id))
    .innerJoin(templates, eq(templates.id, template_versions.template_id))
    .where(
      and(
        eqParam(template_versions.template_id),
        eq(template_versions.archived, false),
        sql`${template_versions.id} <> ${templates.active_version_id}`,
        sql`${jobs.completed_at} is not null`,
        sql`(${sql.placeholder("all")} = 1 or ${jobs.error} <> '' or ${jobs.canceled_at} is not null)`,
        sql`not exists (select 1 from workspaces w join workspace_builds b on b.id = w.latest_build_id
          where w.template_id = ${template_versions.template_id} and w.deleted = 0
          and b.template_version_id = ${template_versions.id})`,
      ),
    )
    .orderBy(asc(template_versions.created_at), asc(template_versions.id)),
);

const isOpenImport = and(isNull(jobs.completed_at), eq(jobs.type, "template_version_import"));
const openImports = (where: SQL | undefined) =>
  build
    .select({ id: template_versions.id, job_id: jobs.id, tags: jobs.tags })
    .from(jobs)
    .innerJoin(template_versions, eq(template_versions.job_id, jobs.id))
    .where(where)
    .orderBy(asc(jobs.created_at));

/** Versions with an open import job, oldest first, resumed at startup. */
export const listOpenImports = forOwnRows(
  query(openImports(isOpenImport)),
  query(openImports(and(isOpenImport, isOwn(template_versions.part)))),
);

/** Returns the manifest's column and those derived from it. */
export const manifestColumns = (
  manifest: Manifest,
): Pick<TemplateVersionRow, "manifest" | "has_ai_task" | "has_external_agent" | "has_snapshot_module"> => ({
  manifest: JSON.stringify(manifest),
  has_ai_task: manifest.ai_task === true,
  has_external_agent: manifest.provisioner === "external" || manifest.terraform?.has_external_agent === true,
  has_snapshot_module: manifest.terraform?.has_snapshot_module === true,
});

export const insertTemplateVersion = insertInto(template_versions);
export const updateTemplateVersion = updateBy(template_versions, template_versions.id);

/** Assigns a version without a template to one. Rejected as stale when it has one. */
export const adoptVersion = statement<{ id: string; template_id: string; updated_at: number }>(
  build
    .update(template_versions)
    .set({
      template_id: sql.placeholder("template_id") as never,
      updated_at: sql.placeholder("updated_at") as never,
    })
    .where(and(eqParam(template_versions.id), isNull(template_versions.template_id))),
  { expect: 1 },
);
