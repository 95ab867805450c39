// Provisioner jobs and their logs: template imports and workspace builds. Rows are written by the job's owner alone (the workspace
// or the template-version actor); the reads here are by key, except the list of open jobs at start.
import { and, asc, eq, gt, lt, sql } from "drizzle-orm";
import { build, insertInto, query, updateBy } from "../engine/sql.ts";
import { job_logs, jobs } from "../schema/jobs.ts";

export type JobRow = typeof jobs.$inferSelect;
export type JobLogRow = typeof job_logs.$inferSelect;

/** Lines of one page of a job's log. */
export const JOB_LOG_PAGE = 5_000;

export const findJob = query(
  build
    .select()
    .from(jobs)
    .where(eq(jobs.id, sql.placeholder("id"))),
);

/** `key` comes from `store.reserve("jobs", 1)`. */
export const insertJob = insertInto(jobs);
/** By the job's UUID. */
export const updateJob = updateBy(jobs, jobs.id);

/** Ids come from `store.reserve("job_logs", n)`. */
export const insertJobLogs = insertInto(job_logs);

const page = and(
  eq(job_logs.job, sql.placeholder("job")),
  gt(job_logs.id, sql.placeholder("after")),
  lt(job_logs.id, sql.placeholder("before")),
);

/** Lines with `after` < id < `before`, oldest first, at most `limit`; `job` is the integer key. */
export const listJobLogs = query(
  build.select().from(job_logs).where(page).orderBy(asc(job_logs.id)).limit(sql.placeholder("limit")),
);
