// Organizations in which workspaces may not be shared: enabled unless a row disables it. Guards batches of the workspace actor; nothing
// here changes a workspace.
import { and, eq, sql } from "drizzle-orm";
import { build, eqParam, query, type Statement, statement } from "../engine/sql.ts";
import { settings } from "../schema/core.ts";
import { organizations } from "../schema/users.ts";
import { workspaces } from "../schema/workspaces.ts";

const PREFIX = "sharing_disabled/";
const isOff = sql`exists (select 1 from ${settings} where ${settings.key} = ${sql.raw(`'${PREFIX}'`)} || ${organizations.id})`;

/** A row when sharing is disabled: {organization_id}. */
export const findSharingOff = query(
  build
    .select({ id: organizations.id })
    .from(organizations)
    .where(and(eq(organizations.id, sql.placeholder("organization_id")), isOff)),
);

const disableSharing = statement<{ key: string }>(
  build
    .insert(settings)
    .values({ key: sql.placeholder("key"), value: "true" })
    .onConflictDoNothing(),
  { alone: "sharing" },
);
const drop = statement<{ key: string }>(build.delete(settings).where(eqParam(settings.key)));

/** Enables or disables sharing. Idempotent. */
export const setSharingOff = (organization_id: string, off: boolean): Statement =>
  (off ? disableSharing : drop)({ key: PREFIX + organization_id });

/** A guard: rejects the batch as stale when sharing is disabled: {organization_id}. */
export const guardSharing = statement<{ organization_id: string }>(
  build
    .update(organizations)
    .set({ deleted: false })
    .where(
      and(
        eq(organizations.id, sql.placeholder("organization_id")),
        eq(organizations.deleted, false),
        sql`not ${isOff}`,
      ),
    ),
  { expect: 1, alone: "sharing" },
);

/** Workspaces of the organization that are shared with the person directly: {organization_id, user_id}. For `scan`. */
export const listWorkspacesSharedWith = query(
  build
    .select({ id: workspaces.id })
    .from(workspaces)
    .where(
      and(
        eqParam(workspaces.organization_id),
        eq(workspaces.deleted, false),
        // Must match the definition of the index `workspaces_shared` word for word.
        sql`(${workspaces.user_acl} <> '{}' or ${workspaces.group_acl} <> '{}')`,
        sql`exists (select 1 from json_each(${workspaces.user_acl}) e where e.key = ${sql.placeholder("user_id")})`,
      ),
    )
    .limit(10_000),
);

/** Workspaces that are shared with any of these users, groups and organizations: {subjects}, a JSON array of IDs. For `scan`. */
export const listWorkspacesSharedWithAny = query(
  build
    .select({ id: workspaces.id })
    .from(workspaces)
    .where(
      and(
        eq(workspaces.deleted, false),
        // Must match the definition of the index `workspaces_shared` word for word.
        sql`(${workspaces.user_acl} <> '{}' or ${workspaces.group_acl} <> '{}')`,
        sql`(exists (select 1 from json_each(${workspaces.user_acl}) e where e.key in
            (select value from json_each(${sql.placeholder("subjects")})))
          or exists (select 1 from json_each(${workspaces.group_acl}) e where e.key in
            (select value from json_each(${sql.placeholder("subjects")}))))`,
      ),
    )
    .limit(10_000),
);

/** Workspaces that are shared although sharing is disabled: {organization_id}, null for all. For `scan`. */
export const listForbiddenSharing = query(
  build
    .select({ id: workspaces.id })
    .from(workspaces)
    .innerJoin(organizations, eq(organizations.id, workspaces.organization_id))
    .where(
      and(
        isOff,
        sql`${organizations.id} = coalesce(${sql.placeholder("organization_id")}, ${organizations.id})`,
        eq(workspaces.deleted, false),
        // Must match the definition of the index `workspaces_shared` word for word.
        sql`(${workspaces.user_acl} <> '{}' or ${workspaces.group_acl} <> '{}')`,
      ),
    )
    .limit(10_000),
);
