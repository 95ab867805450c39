// Provisioner jobs (template imports and workspace builds) and their logs. A job's rows are written by its owner: the workspace actor for
// builds, the template-version actor for imports.
import { sql } from "drizzle-orm";
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { PlannedResource } from "#schema/templates/template-version.ts";
import type { JobTiming } from "#schema/workspaces/job.ts";
import { uncachedTable } from "./cache-dependencies.ts";

export const jobs = sqliteTable(
  "jobs",
  {
    /** Integer key, used by the logs. */
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    organization_id: text().notNull(),
    initiator_id: text().notNull(),
    /** template_version_import | workspace_build | template_version_dry_run */
    type: text().notNull(),
    provisioner: text().notNull(),
    file_id: text().notNull(),
    /** {template_version_id, workspace_build_id}; for a dry run, also its input. */
    input: text({ mode: "json" }).$type<JobInput>().notNull(),
    tags: text({ mode: "json" }).$type<Record<string, string>>().notNull().default({}),
    worker_id: text(),
    worker_name: text().notNull().default(""),
    error: text().notNull().default(""),
    error_code: text().notNull().default(""),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    started_at: integer(),
    canceled_at: integer(),
    completed_at: integer(),
    /** How often a worker has begun it: once, and again after each interruption. */
    attempts: integer().notNull().default(0),
    logs_length: integer().notNull().default(0),
    logs_overflowed: integer({ mode: "boolean" }).notNull().default(false),
    /** Stage timings reported by the provisioner: {action, resource, source, stage, started_at, ended_at}. */
    timings: text({ mode: "json" }).$type<JobTiming[]>().notNull().default([]),
  },
  (table) => [index("jobs_open").on(table.created_at).where(sql`${table.completed_at} is null`)],
);

export type JobInput = {
  template_version_id?: string;
  workspace_build_id?: string;
  /** For a dry run: the shard of its version. */
  part?: number;
  /** For a dry run: the name and the complete parameter values of a workspace that is never created. */
  workspace_name?: string;
  parameters?: Record<string, string>;
  /** For a successful dry run: the planned resources as callers see them; absent if the template alone determines them. */
  planned?: PlannedResource[];
};

export const job_logs = uncachedTable(
  "job_logs",
  {
    id: integer().primaryKey(),
    job: integer().notNull(),
    created_at: integer().notNull(),
    /** 0 provisioner_daemon, 1 provisioner */
    source: integer().notNull(),
    /** 0 trace, 1 debug, 2 info, 3 warn, 4 error */
    level: integer().notNull(),
    stage: text().notNull(),
    output: text().notNull(),
  },
  (table) => [index("job_logs_job").on(table.job, table.id)],
);
