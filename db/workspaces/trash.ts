// Deleted workspaces whose files are in the trash.
import { and, asc, desc, eq, isNotNull, sql } from "drizzle-orm";
import { build, eqParam, query } from "../engine/sql.ts";
import { templates } from "../schema/templates.ts";
import { users } from "../schema/users.ts";
import { workspaces } from "../schema/workspaces.ts";

/** Most recently deleted first. Parameters: {limit}. For `scan`. */
export const listTrash = query(
  build
    .select({
      id: workspaces.id,
      name: workspaces.name,
      owner_id: workspaces.owner_id,
      owner_name: users.username,
      organization_id: workspaces.organization_id,
      user_acl: workspaces.user_acl,
      group_acl: workspaces.group_acl,
      template_id: workspaces.template_id,
      template_name: templates.name,
      template_display_name: templates.display_name,
      deleted_at: workspaces.updated_at,
      trashed_until: workspaces.trashed_until,
      trashed_bytes: workspaces.trashed_bytes,
    })
    .from(workspaces)
    .innerJoin(users, eq(users.id, workspaces.owner_id))
    .innerJoin(templates, eq(templates.id, workspaces.template_id))
    .where(and(eq(workspaces.deleted, true), isNotNull(workspaces.trashed_until)))
    .orderBy(desc(workspaces.updated_at), desc(workspaces.id))
    .limit(sql.placeholder("limit")),
);

/** An owner's workspaces in the trash, next to be deleted first. Parameters: {owner_id}. */
export const listTrashByOwner = query(
  build
    .select({ id: workspaces.id })
    .from(workspaces)
    .where(and(eqParam(workspaces.owner_id), eq(workspaces.deleted, true), isNotNull(workspaces.trashed_until)))
    .orderBy(asc(workspaces.trashed_until), asc(workspaces.id)),
);
