// Resources created by builds. Rows are written when a build starts and shown once it has succeeded.
import { asc, sql } from "drizzle-orm";
import { build, deleteBy, eqParam, insertInto, query } from "../engine/sql.ts";
import { workspace_resources } from "../schema/workspaces.ts";

// By the lowest position among its agents, then by name (facts/platform 2.5); resources without an agent come last.
const order = [
  sql`coalesce((select min(a.display_order) from agents a where a.resource_id = ${workspace_resources.id}), 1000000)`,
  asc(workspace_resources.name),
];

export type ResourceRow = typeof workspace_resources.$inferSelect;

/** The resources of one job, in display order. Parameters: {job_id}. */
export const listResources = query(
  build
    .select()
    .from(workspace_resources)
    .where(eqParam(workspace_resources.job_id))
    .orderBy(...order),
);

/** The resources of several jobs; `job_ids` is a JSON array. */
export const listResourcesByJobs = query(
  build
    .select()
    .from(workspace_resources)
    .where(sql`${workspace_resources.job_id} in (select value from json_each(${sql.placeholder("job_ids")}))`)
    .orderBy(...order),
);

export const insertResource = insertInto(workspace_resources);
/** Deletes by job. */
export const deleteResources = deleteBy(workspace_resources, workspace_resources.job_id);
