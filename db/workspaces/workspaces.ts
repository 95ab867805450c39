// Workspaces: reads by key and by owner and name, and the statements of the workspace actor. Complete views for callers are in
// db/workspaces/views.ts, lists and searches in db/workspaces/lists.ts.
import { and, desc, sql } from "drizzle-orm";
import { build, eqParam, findBy, insertInto, query, updateBy } from "../engine/sql.ts";
import { users } from "../schema/users.ts";
import { workspaces } from "../schema/workspaces.ts";

export type WorkspaceRow = typeof workspaces.$inferSelect;

export const findWorkspace = findBy(workspaces, workspaces.id);

/** The columns that determine who may see a workspace. Parameters: {id}. */
export const findWorkspaceAccessRow = query(
  build
    .select({
      id: workspaces.id,
      owner_id: workspaces.owner_id,
      organization_id: workspaces.organization_id,
      user_acl: workspaces.user_acl,
      group_acl: workspaces.group_acl,
      template_id: workspaces.template_id,
      name: workspaces.name,
      deleted: workspaces.deleted,
      dormant_at: workspaces.dormant_at,
      latest_build_id: workspaces.latest_build_id,
      version: workspaces.version,
    })
    .from(workspaces)
    .where(eqParam(workspaces.id)),
);
const toWorkspaceAccessRow = findWorkspaceAccessRow({ id: "" }).map;
export type WorkspaceAccessRow = ReturnType<typeof toWorkspaceAccessRow>;

/**
 * The ID of an owner's workspace by name, case-insensitive: {owner_id, name}. Prefers a workspace that is not deleted, then the one deleted
 * last (facts/platform 3.3).
 */
export const findWorkspaceByName = query(
  build
    .select({ id: workspaces.id, deleted: workspaces.deleted })
    .from(workspaces)
    .where(and(eqParam(workspaces.owner_id), sql`lower(${workspaces.name}) = lower(${sql.placeholder("name")})`))
    .orderBy(workspaces.deleted, desc(workspaces.updated_at))
    .limit(1),
);

/** The owner's data for a build: {id}; includes deleted users. */
export const findWorkspaceOwner = query(
  build.select({ id: users.id, username: users.username, email: users.email }).from(users).where(eqParam(users.id)),
);

export const insertWorkspace = insertInto(workspaces);
export const updateWorkspace = updateBy(workspaces, workspaces.id);
