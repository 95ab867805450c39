// Provisioner jobs and their logs: template imports and workspace builds. Rows are written only by the job's owner (the workspace or
// template-version actor); reads are by key, except the list of open jobs at startup.
import { and, asc, desc, gt, lt, sql } from "drizzle-orm";
import { build, eqParam, findBy, insertInto, query, updateBy } from "../engine/sql.ts";
import { job_logs, jobs } from "../schema/jobs.ts";

export type JobRow = typeof jobs.$inferSelect;
export type JobLogRow = typeof job_logs.$inferSelect;

/** Page size of a job's log. */
export const JOB_LOG_PAGE = 5_000;

export const findJob = findBy(jobs, jobs.id);

/** `key` comes from `store.reserve("jobs", 1)`. */
export const insertJob = insertInto(jobs);
/** By the job's UUID. */
export const updateJob = updateBy(jobs, jobs.id);

/** IDs come from `store.reserve("job_logs", n)`. */
export const insertJobLogs = insertInto(job_logs);

const page = and(
  eqParam(job_logs.job),
  gt(job_logs.id, sql.placeholder("after")),
  lt(job_logs.id, sql.placeholder("before")),
);

/** Lines with `after` < id < `before`, oldest first, at most `limit`; `job` is the integer key. */
export const listJobLogs = query(
  build.select().from(job_logs).where(page).orderBy(asc(job_logs.id)).limit(sql.placeholder("limit")),
);

/** The newest line of a job: {job}, the integer key. */
export const findLastJobLog = query(
  build
    .select({ output: job_logs.output })
    .from(job_logs)
    .where(eqParam(job_logs.job))
    .orderBy(desc(job_logs.id))
    .limit(1),
);
