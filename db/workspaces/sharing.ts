// Organizations in which workspaces may not be shared: enabled unless a row disables it. Guards batches of the workspace actor; nothing
// here changes a workspace.
import { and, eq, sql } from "drizzle-orm";
import { build, eqParam, query, type Statement, statement } from "../engine/sql.ts";
import { setTimersWhere } from "../engine/timers.ts";
import { settings } from "../schema/core.ts";
import { organizations } from "../schema/users.ts";
import { workspaces } from "../schema/workspaces.ts";

const PREFIX = "sharing_disabled/";
const isOff = sql`exists (select 1 from ${settings} where ${settings.key} = ${sql.raw(`'${PREFIX}'`)} || ${organizations.id})`;

/** A row when sharing is disabled: {organization_id}. */
export const findSharingDisabled = query(
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
const enableSharing = statement<{ key: string }>(build.delete(settings).where(eqParam(settings.key)));

/** Enables or disables sharing. Idempotent. */
export const storeSharingDisabled = (organization_id: string, off: boolean): Statement =>
  (off ? disableSharing : enableSharing)({ key: PREFIX + organization_id });

/** A guard: rejects the batch as stale when sharing is disabled. Parameters: {organization_id}. */
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

/** Workspaces of the organization that are shared with the person directly. Parameters: {organization_id, user_id}. For `scan`. */
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

/** The timer of a workspace to which someone has lost access without a change of its shares. */
export const LOST_ACCESS = "lost_access";

// Must match the definition of the index `workspaces_shared`.
const IS_SHARED = "(user_acl <> '{}' or group_acl <> '{}')";

const hasKey = (acl: "user_acl" | "group_acl", keys: string): string =>
  `exists (select 1 from json_each(${acl}) e where e.key in (${keys}))`;

/** Returns the condition that a workspace is shared with one of these users. */
const isSharedWith = (users: string): string => {
  const groups = `select group_id from group_members where user_id in (${users})
    union all select organization_id from organization_members where user_id in (${users})`;
  return `(${IS_SHARED} and (${hasKey("user_acl", users)} or ${hasKey("group_acl", groups)}))`;
};

/** Sets the timer for every workspace that one of these users can enter. */
const markLossesOf = (users: string, value: string, now: number): Statement => {
  const isOwner = `exists (select 1 from users u where u.id in (${users})
    and exists (select 1 from json_each(u.roles) r where r.value = 'owner'))`;
  return setTimersWhere(`(owner_id in (${users}) or ${isOwner} or ${isSharedWith(users)})`, [value], LOST_ACCESS, now);
};

/**
 * Sets the timer for every workspace that the user can enter, before the change in the same batch: the end of their account, role, keys, or
 * of an application's access.
 */
export const markLossesOfUser = (user_id: string, now: number): Statement =>
  markLossesOf("select id from users where id = ?3", user_id, now);

const hasLost = (role: string, before: readonly string[], after: readonly string[]): boolean =>
  before.includes(role) && !after.includes(role);

/**
 * Like `markLossesOfUser`, for site roles that end: an owner could enter every workspace, and a template administrator could share ports of
 * workspaces to which the user has access (rule SH-14).
 */
export const markLossesOfRoles = (
  { id, roles }: { readonly id: string; readonly roles: readonly string[] },
  after: readonly string[],
  now: number,
): Statement[] => {
  if (hasLost("owner", roles, after)) return [markLossesOfUser(id, now)];
  if (!hasLost("template-admin", roles, after)) return [];
  return [setTimersWhere(isSharedWith("select id from users where id = ?3"), [id], LOST_ACCESS, now)];
};

/** Like `markLossesOfUser`, for all users who have authorized the application, in the batch that deletes it. */
export const markLossesOfApp = (app_id: string, now: number): Statement =>
  markLossesOf("select user_id from oauth2_grants where app_id = ?3", app_id, now);

/** Like `markLossesOfUser`, for what a key of a user can enter: all that the user can, or its one workspace. */
export const markLossesOfKey = (
  { user_id, workspace_id }: { readonly user_id: string; readonly workspace_id: string | null },
  now: number,
): Statement =>
  workspace_id === null ? markLossesOfUser(user_id, now) : setTimersWhere("id = ?3", [workspace_id], LOST_ACCESS, now);

/**
 * Like `markLossesOfUser`, for the workspaces of one organization, in the batch that ends the membership, before the user's groups there
 * end.
 */
export const markLossesOfMember = (
  { organization_id, user_id }: { readonly organization_id: string; readonly user_id: string },
  now: number,
): Statement =>
  setTimersWhere(
    `organization_id = ?4 and ${IS_SHARED} and (${hasKey("user_acl", "?3")} or ${hasKey(
      "group_acl",
      "select ?4 union all select group_id from group_members where user_id = ?3 and organization_id = ?4",
    )})`,
    [user_id, organization_id],
    LOST_ACCESS,
    now,
  );

/** Like `markLossesOfMember`, for roles in the organization that end and allowed sharing ports (rule SH-14). */
export const markLossesOfMemberRoles = (
  member: { readonly organization_id: string; readonly user_id: string },
  before: readonly string[],
  after: readonly string[],
  now: number,
): Statement[] =>
  ["organization-admin", "organization-template-admin"].some((role) => hasLost(role, before, after))
    ? [markLossesOfMember(member, now)]
    : [];

/** Like `markLossesOfUser`, for workspaces that are shared with a group, in the batch that removes members or the group. */
export const markLossesOfGroup = (group_id: string, now: number): Statement =>
  setTimersWhere(`${IS_SHARED} and ${hasKey("group_acl", "?3")}`, [group_id], LOST_ACCESS, now);
