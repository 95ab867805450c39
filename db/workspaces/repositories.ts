// The workspaces that someone has made from repositories, for offering these repositories again.
import { and, desc, eq, like, sql } from "drizzle-orm";
import { build, query } from "../engine/sql.ts";
import { workspace_build_parameters, workspace_builds, workspaces } from "../schema/workspaces.ts";

/** Rows that are looked at: several workspaces may be of one repository. */
const MAX_ROWS = 100;

/** {owner_id}: the last used first, deleted ones, too. `value` is the plan of a repository. */
export const listRepositoryWorkspaces = query(
  build
    .select({
      id: workspaces.id,
      name: workspaces.name,
      deleted: workspaces.deleted,
      last_used_at: workspaces.last_used_at,
      value: workspace_build_parameters.value,
    })
    .from(workspaces)
    .innerJoin(workspace_builds, eq(workspace_builds.id, workspaces.latest_build_id))
    .innerJoin(workspace_build_parameters, eq(workspace_build_parameters.build_id, workspace_builds.id))
    .where(
      and(
        eq(workspaces.owner_id, sql.placeholder("owner_id")),
        // Plans are JSON with this member; what else a parameter holds is no plan.
        like(workspace_build_parameters.value, '{%"ref_kind":%'),
      ),
    )
    .orderBy(desc(workspaces.last_used_at), desc(workspaces.id))
    .limit(MAX_ROWS),
);
