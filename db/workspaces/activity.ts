// Why a workspace's end moved and what the server did to it on its own. Written by the workspace actor, read by its activity page.
import { desc, sql } from "drizzle-orm";
import { build, given, insertInto, query, type Statement, statement } from "../engine/sql.ts";
import { workspace_activity } from "../schema/workspaces.ts";

export type WorkspaceActivityRow = Omit<typeof workspace_activity.$inferSelect, "id">;

/** So many are kept of each workspace. */
export const KEPT_ACTIVITIES = 50;

const insert = insertInto(workspace_activity);
const prune = statement<{ workspace_id: string }>(
  build.delete(workspace_activity).where(sql`${workspace_activity.id} in (
    select id from workspace_activity where workspace_id = ${sql.placeholder("workspace_id")}
    order by id desc limit -1 offset ${sql.raw(String(KEPT_ACTIVITIES))})`),
);

/** Keeps one entry and lets the oldest go. */
export const keepActivity = (row: WorkspaceActivityRow): Statement[] => [
  insert(row),
  prune({ workspace_id: row.workspace_id }),
];

/** The newest first: {workspace_id}. */
export const listActivity = query(
  build
    .select()
    .from(workspace_activity)
    .where(given(workspace_activity.workspace_id))
    .orderBy(desc(workspace_activity.id))
    .limit(KEPT_ACTIVITIES),
);
