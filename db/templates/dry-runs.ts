// Dry runs of template versions: jobs that plan a workspace without creating it. The rows are those of db/workspaces/jobs.ts; written by
// the dry-run actor.
import { and, asc, eq, isNull, type SQL, sql } from "drizzle-orm";
import { build, eqParam, query } from "../engine/sql.ts";
import { forOwnRows, isOwn } from "../own-rows.ts";
import { jobs } from "../schema/jobs.ts";

const isDryRun = eq(jobs.type, "template_version_dry_run");

const isOpen = and(isNull(jobs.completed_at), isDryRun);
const openDryRuns = (where: SQL | undefined) =>
  build.select({ id: jobs.id, tags: jobs.tags }).from(jobs).where(where).orderBy(asc(jobs.created_at));

/** Dry runs of older versions have no part. */
const dryRunPart = sql`coalesce(cast(${jobs.input} ->> 'part' as integer),
  (select v.part from template_versions v where v.id = ${jobs.input} ->> 'template_version_id'))`;

/** Open dry runs, oldest first, resumed at startup. */
export const listOpenDryRuns = forOwnRows(
  query(openDryRuns(isOpen)),
  query(openDryRuns(and(isOpen, isOwn(dryRunPart)))),
);

/** Number of a person's open dry runs. Parameters: {initiator_id}. */
export const countOpenDryRuns = query(
  build
    .select({ count: sql<number>`count(*)` })
    .from(jobs)
    .where(and(isNull(jobs.completed_at), isDryRun, eqParam(jobs.initiator_id))),
);
