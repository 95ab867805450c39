// Changes of a workspace's deadline and the server's automatic actions. Written by the workspace actor, read by its activity page.
import { desc, sql } from "drizzle-orm";
import { build, eqParam, insertInto, query, type Statement, statement } from "../engine/sql.ts";
import { workspace_activity } from "../schema/workspaces.ts";

export type WorkspaceActivityRow = Omit<typeof workspace_activity.$inferSelect, "id">;

/** Maximum entries kept per workspace. */
export const MAX_ACTIVITIES = 50;

const insert = insertInto(workspace_activity);
const deleteOldest = statement<{ workspace_id: string }>(
  build.delete(workspace_activity).where(sql`${workspace_activity.id} in (
    select id from workspace_activity where workspace_id = ${sql.placeholder("workspace_id")}
    order by id desc limit -1 offset ${sql.raw(String(MAX_ACTIVITIES))})`),
);

/** Adds an entry and deletes the oldest ones. */
export const insertActivity = (row: WorkspaceActivityRow): Statement[] => [
  insert(row),
  deleteOldest({ workspace_id: row.workspace_id }),
];

/** Newest first. Parameters: {workspace_id}. */
export const listActivity = query(
  build
    .select()
    .from(workspace_activity)
    .where(eqParam(workspace_activity.workspace_id))
    .orderBy(desc(workspace_activity.id))
    .limit(MAX_ACTIVITIES),
);
