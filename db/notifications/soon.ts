// Workspaces that will stop or be deleted on their own soon.
import { and, eq, gt, isNull, lte, sql } from "drizzle-orm";
import { build, query } from "../engine/sql.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

const about = { id: workspaces.id, owner_id: workspaces.owner_id, name: workspaces.name };
/** In one commit; the next minute takes the next ones. */
const MOST = 500;

/** A notice of this deadline was written: the minutes until then tell of others. */
const isUnannounced = (name: string, at: typeof workspaces.deleting_at | typeof workspace_builds.deadline) =>
  sql`not exists (select 1 from notifications n where n.user_id = ${workspaces.owner_id}
    and n.dedupe = ${name} || ':' || ${workspaces.id} || ':' || ${at})`;

/** {now, until}: running, with a deadline in between. */
export const listStoppedSoon = query(
  build
    .select({ ...about, deadline: workspace_builds.deadline })
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
    .limit(MOST),
);

/** {now, until}: dormant, to be deleted in between. */
export const listDeletedSoon = query(
  build
    .select({ ...about, deleting_at: workspaces.deleting_at })
    .from(workspaces)
    .where(
      and(
        eq(workspaces.deleted, false),
        gt(workspaces.deleting_at, sql.placeholder("now")),
        lte(workspaces.deleting_at, sql.placeholder("until")),
        isUnannounced("deleted_soon", workspaces.deleting_at),
      ),
    )
    .limit(MOST),
);
