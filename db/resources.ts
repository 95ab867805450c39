// What builds brought to life. Rows are written with the start of a build and shown once it has succeeded.
import { asc, eq, sql } from "drizzle-orm";
import { workspace_resources } from "./schema/workspaces.ts";
import { build, deleteBy, insertInto, query } from "./sql.ts";

export type ResourceRow = typeof workspace_resources.$inferSelect;

/** The resources of one job, by name: {job_id}. */
export const listResources = query(
  build
    .select()
    .from(workspace_resources)
    .where(eq(workspace_resources.job_id, sql.placeholder("job_id")))
    .orderBy(asc(workspace_resources.name)),
);

/** The resources of several jobs; `job_ids` is a JSON array. */
export const listResourcesOf = query(
  build
    .select()
    .from(workspace_resources)
    .where(sql`${workspace_resources.job_id} in (select value from json_each(${sql.placeholder("job_ids")}))`)
    .orderBy(asc(workspace_resources.name)),
);

export const insertResource = insertInto(workspace_resources);
/** By job. */
export const deleteResources = deleteBy(workspace_resources, workspace_resources.job_id);
