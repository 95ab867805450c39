// Organizations in which workspaces may not be shared: a setting of each, on unless a row says otherwise. The workspace actor guards
// its batches with it; nothing here changes a workspace.
import { and, eq, sql } from "drizzle-orm";
import { build, given, query, type Statement, statement } from "../engine/sql.ts";
import { settings } from "../schema/core.ts";
import { organizations } from "../schema/users.ts";
import { workspaces } from "../schema/workspaces.ts";

const PREFIX = "sharing_disabled/";
const isOff = sql`exists (select 1 from ${settings} where ${settings.key} = ${sql.raw(`'${PREFIX}'`)} || ${organizations.id})`;

/** One row when sharing is off there: {organization_id}. */
export const findSharingOff = query(
  build
    .select({ id: organizations.id })
    .from(organizations)
    .where(and(eq(organizations.id, sql.placeholder("organization_id")), isOff)),
);

const put = statement<{ key: string }>(
  build
    .insert(settings)
    .values({ key: sql.placeholder("key"), value: "true" })
    .onConflictDoNothing(),
  { alone: "sharing" },
);
const drop = statement<{ key: string }>(build.delete(settings).where(given(settings.key)));

/** Switches it; no change is no error. */
export const setSharingOff = (organization_id: string, off: boolean): Statement =>
  (off ? put : drop)({ key: PREFIX + organization_id });

/** Changes nothing; refuses the batch as stale when sharing is off there by now: {organization_id}. */
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

/** Returns workspaces of the organization that name the person themselves: {organization_id, user_id}. For `scan`. */
export const listWorkspacesSharedWith = query(
  build
    .select({ id: workspaces.id })
    .from(workspaces)
    .where(
      and(
        given(workspaces.organization_id),
        eq(workspaces.deleted, false),
        // Word by word as the index `workspaces_shared` has it.
        sql`(${workspaces.user_acl} <> '{}' or ${workspaces.group_acl} <> '{}')`,
        sql`exists (select 1 from json_each(${workspaces.user_acl}) e where e.key = ${sql.placeholder("user_id")})`,
      ),
    )
    .limit(10_000),
);

/** Workspaces that are shared where they may not be: {organization_id}, null for everywhere. For `scan`. */
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
        // Word by word as the index `workspaces_shared` has it.
        sql`(${workspaces.user_acl} <> '{}' or ${workspaces.group_acl} <> '{}')`,
      ),
    )
    .limit(10_000),
);
