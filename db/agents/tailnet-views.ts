// A user's workspaces for desktop clients (src/api/tailnet/workspace-updates.ts): only names and states.
import { and, asc, eq, gt, sql } from "drizzle-orm";
import { build, eqParam, query } from "../engine/sql.ts";
import { workspaces } from "../schema/workspaces.ts";

const columns = {
  id: workspaces.id,
  owner_id: workspaces.owner_id,
  name: workspaces.name,
  status: workspaces.status,
  deleted: workspaces.deleted,
  latest_build_id: workspaces.latest_build_id,
};

/** One workspace, including deleted ones. Parameters: {id}. */
export const findOwnedWorkspace = query(build.select(columns).from(workspaces).where(eqParam(workspaces.id)));

/** The IDs of an owner's workspaces in ascending order. Parameters: {owner_id, after, limit}. */
export const listOwnedWorkspaces = query(
  build
    .select({ id: workspaces.id })
    .from(workspaces)
    .where(
      and(eqParam(workspaces.owner_id), eq(workspaces.deleted, false), gt(workspaces.id, sql.placeholder("after"))),
    )
    .orderBy(asc(workspaces.id))
    .limit(sql.placeholder("limit")),
);
