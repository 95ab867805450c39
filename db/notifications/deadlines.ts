// Workspaces that will soon stop or be deleted automatically.
import { and, eq, gt, isNull, lte, sql } from "drizzle-orm";
import { build, query } from "../engine/sql.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

const workspaceColumns = { id: workspaces.id, owner_id: workspaces.owner_id, name: workspaces.name };
/** Maximum rows per commit. The run in the next minute handles further rows. */
const MAX_ROWS = 500;

/** The condition that no notification about this deadline exists, because the check runs every minute until the deadline. */
const isUnannounced = (name: string, at: typeof workspaces.deleting_at | typeof workspace_builds.deadline) =>
  sql`not exists (select 1 from notifications n where n.user_id = ${workspaces.owner_id}
    and n.dedupe = ${name} || ':' || ${workspaces.id} || ':' || ${at})`;

/** Running workspaces with a deadline in this range. Parameters: {now, until}. */
export const listStoppedSoon = query(
  build
    .select({ ...workspaceColumns, deadline: workspace_builds.deadline })
    .from(workspace_builds)
    .innerJoin(workspaces, eq(workspaces.latest_build_id, workspace_builds.id))
    .where(
      and(
        eq(workspaces.status, "running"),
        eq(workspaces.deleted, false),
        isNull(workspaces.dormant_at),
        gt(workspace_builds.deadline, sql.placeholder("now")),
        lte(workspace_builds.deadline, sql.placeholder("until")),
        isUnannounced("stops_soon", workspace_builds.deadline),
      ),
    )
    .limit(MAX_ROWS),
);

/** Dormant workspaces to be deleted in this range. Parameters: {now, until}. */
export const listDeletedSoon = query(
  build
    .select({ ...workspaceColumns, deleting_at: workspaces.deleting_at })
    .from(workspaces)
    .where(
      and(
        eq(workspaces.deleted, false),
        gt(workspaces.deleting_at, sql.placeholder("now")),
        lte(workspaces.deleting_at, sql.placeholder("until")),
        isUnannounced("deleted_soon", workspaces.deleting_at),
      ),
    )
    .limit(MAX_ROWS),
);
