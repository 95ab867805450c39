// The repositories of a user's workspaces, for offering them again.
import { and, desc, eq, like, sql } from "drizzle-orm";
import { build, query } from "../engine/sql.ts";
import { workspace_build_parameters, workspace_builds, workspaces } from "../schema/workspaces.ts";

/** Maximum rows read, since several workspaces may use the same repository. */
const MAX_ROWS = 100;

/** Most recently used first, including deleted ones. Parameters: {owner_id}. `value` is the plan of a repository. */
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
        // Plans are JSON with this member; no other parameter value has it.
        like(workspace_build_parameters.value, '{%"ref_kind":%'),
      ),
    )
    .orderBy(desc(workspaces.last_used_at), desc(workspaces.id))
    .limit(MAX_ROWS),
);
