// Dry runs of template versions: jobs that plan a workspace and make none. Rows are those of db/workspaces/jobs.ts; written by the dry-run actor.
import { and, asc, eq, isNull, sql } from "drizzle-orm";
import { build, given, query } from "../engine/sql.ts";
import { jobs } from "../schema/jobs.ts";

const isDryRun = eq(jobs.type, "template_version_dry_run");

/** Those that have not ended, oldest first: taken up again at start. */
export const listOpenDryRuns = query(
  build
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(isNull(jobs.completed_at), isDryRun))
    .orderBy(asc(jobs.created_at)),
);

/** How many of one person's have not ended: {initiator_id}. */
export const countOpenDryRuns = query(
  build
    .select({ count: sql<number>`count(*)` })
    .from(jobs)
    .where(and(isNull(jobs.completed_at), isDryRun, given(jobs.initiator_id))),
);
