// Builds of workspaces: reads by key and number, and the statements of the workspace actor.
import { and, asc, desc, eq, isNull, lt, sql } from "drizzle-orm";
import { build, eqParam, findBy, insertInto, query, updateBy } from "../engine/sql.ts";
import { forOwnRows, isOwn } from "../own-rows.ts";
import { jobs } from "../schema/jobs.ts";
import { workspace_build_parameters, workspace_builds, workspaces } from "../schema/workspaces.ts";

/** By name. Parameters: {owner_id, template_id}. Includes deleted workspaces. */
export const listLastParameters = query(
  build
    .select({ name: workspace_build_parameters.name, value: workspace_build_parameters.value })
    .from(workspace_build_parameters)
    .where(
      eq(
        workspace_build_parameters.build_id,
        sql`(select b.id from workspace_builds b join workspaces w on w.id = b.workspace_id
          where w.owner_id = ${sql.placeholder("owner_id")} and w.template_id = ${sql.placeholder("template_id")}
          and b.initiator_id = w.owner_id and b.transition = 'start' order by b.created_at desc, b.id desc limit 1)`,
      ),
    )
    .orderBy(asc(workspace_build_parameters.name)),
);

export type BuildRow = typeof workspace_builds.$inferSelect;

export const findBuild = findBy(workspace_builds, workspace_builds.id);

/** The parameter values of a build, by name. Parameters: {build_id}. */
export const listBuildParameters = query(
  build
    .select({ name: workspace_build_parameters.name, value: workspace_build_parameters.value })
    .from(workspace_build_parameters)
    .where(eqParam(workspace_build_parameters.build_id))
    .orderBy(asc(workspace_build_parameters.name)),
);

const isOpen = and(isNull(jobs.completed_at), eq(jobs.type, "workspace_build"));
const openBuilds = () =>
  build
    .select({ workspace_id: workspace_builds.workspace_id, job_id: jobs.id, tags: jobs.tags })
    .from(jobs)
    .innerJoin(workspace_builds, eq(workspace_builds.job_id, jobs.id));

/** Builds with an open job, oldest first, resumed at startup. */
export const listOpenBuilds = forOwnRows(
  query(openBuilds().where(isOpen).orderBy(asc(jobs.created_at))),
  query(
    openBuilds()
      .innerJoin(workspaces, eq(workspaces.id, workspace_builds.workspace_id))
      .where(and(isOpen, isOwn(workspaces.part)))
      .orderBy(asc(jobs.created_at)),
  ),
);

/** Workspaces that should be running: the latest build is a successful start. For `scan`. Parameters: {provisioner, after, limit}. */
export const listRunning = query(
  build
    .select({ id: workspaces.id, state: workspace_builds.state })
    .from(workspaces)
    .innerJoin(workspace_builds, eq(workspace_builds.id, workspaces.latest_build_id))
    .innerJoin(jobs, eq(jobs.id, workspace_builds.job_id))
    .where(
      and(
        eq(workspaces.deleted, false),
        eq(workspace_builds.transition, "start"),
        eqParam(jobs.provisioner),
        eq(jobs.error, ""),
        isNull(jobs.canceled_at),
        sql`${jobs.completed_at} is not null`,
        sql`${workspaces.id} > ${sql.placeholder("after")}`,
      ),
    )
    .orderBy(asc(workspaces.id))
    .limit(sql.placeholder("limit")),
);

/** The build with this number. Parameters: {workspace_id, build_number}. */
export const findBuildByNumber = query(
  build
    .select({ id: workspace_builds.id })
    .from(workspace_builds)
    .where(and(eqParam(workspace_builds.workspace_id), eqParam(workspace_builds.build_number))),
);

/** IDs of a page of builds with numbers below this one, newest first. Parameters: {workspace_id, below, since, limit, offset}. */
export const listBuildIds = query(
  build
    .select({ id: workspace_builds.id })
    .from(workspace_builds)
    .where(
      and(
        eqParam(workspace_builds.workspace_id),
        lt(workspace_builds.build_number, sql.placeholder("below")),
        sql`${workspace_builds.created_at} > ${sql.placeholder("since")}`,
      ),
    )
    .orderBy(desc(workspace_builds.build_number))
    .limit(sql.placeholder("limit"))
    .offset(sql.placeholder("offset")),
);

export const insertBuild = insertInto(workspace_builds);
export const updateBuild = updateBy(workspace_builds, workspace_builds.id);
export const insertBuildParameters = insertInto(workspace_build_parameters);
