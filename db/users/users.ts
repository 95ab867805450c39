// Users. Names and addresses are compared case-insensitively.
import { and, asc, eq, ne, notExists, type SQL, sql } from "drizzle-orm";
import type { Alone } from "../engine/cross-row-guards.ts";
import { build, eqParam, insertInto, query, type Statement, statement, updateBy } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { templates } from "../schema/templates.ts";
import { organization_members, users } from "../schema/users.ts";
import { workspaces } from "../schema/workspaces.ts";

const param = sql.placeholder;

/**
 * The dotfiles to install in a workspace. Parameters: {owner_id, template_id}. No row if the owner has none, or the template does not
 * allow them.
 */
export const findDotfilesToInstall = query(
  build
    .select({
      url: users.dotfiles_url,
      branch: users.dotfiles_branch,
      install_command: users.dotfiles_install_command,
    })
    .from(users)
    .innerJoin(templates, and(eq(templates.id, param("template_id")), eq(templates.allow_dotfiles, true)))
    .where(and(eq(users.id, param("owner_id")), ne(users.dotfiles_url, ""))),
);

export type User = typeof users.$inferSelect;

/** The condition that the user is not deleted. */
export const isNotDeleted = eq(users.deleted, false);

/** The condition that the user is a site owner who may sign in. */
const isOwner = and(
  isNotDeleted,
  ne(users.status, "suspended"),
  sql`exists (select 1 from json_each(${users.roles}) where value = 'owner')`,
);

/** Builds a guard on an existing user: changes nothing, and rejects the batch as `stale` when the condition is false. */
const guard = <Values extends { id: string }>(condition: SQL | undefined, options: { alone?: Alone } = {}) =>
  statement<Values>(
    build
      .update(users)
      .set({ deleted: false })
      .where(and(eqParam(users.id), isNotDeleted, condition)),
    { expect: 1, ...options },
  );

export const findUser = query(
  build
    .select()
    .from(users)
    .where(and(eqParam(users.id), isNotDeleted)),
);

/** Site owners who may sign in. */
export const listOwners = query(build.select({ id: users.id }).from(users).where(isOwner));

/** Owners and user-admins who may sign in. */
export const listUserAdmins = query(
  build
    .select({ id: users.id })
    .from(users)
    .where(
      and(
        isNotDeleted,
        eq(users.status, "active"),
        sql`exists (select 1 from json_each(${users.roles}) where value in ('owner', 'user-admin'))`,
      ),
    ),
);

export const findUserByName = query(
  build
    .select()
    .from(users)
    .where(and(sql`lower(${users.username}) = lower(${sql.placeholder("username")})`, isNotDeleted)),
);

export const findUserByEmail = query(
  build
    .select()
    .from(users)
    .where(and(sql`lower(${users.email}) = lower(${sql.placeholder("email")})`, isNotDeleted)),
);

/** Public data of several users who are not deleted: {ids} is a JSON array. */
export const listMinimalUsers = query(
  build
    .select({ id: users.id, username: users.username, name: users.name, avatar_url: users.avatar_url })
    .from(users)
    .where(and(sql`${users.id} in (select value from json_each(${sql.placeholder("ids")}))`, isNotDeleted))
    .orderBy(asc(sql`lower(${users.username})`)),
);

/** Several users who are not deleted, by username: {ids} is a JSON array. */
export const listUsersByIds = query(
  build
    .select()
    .from(users)
    .where(and(sql`${users.id} in (select value from json_each(${sql.placeholder("ids")}))`, isNotDeleted))
    .orderBy(asc(sql`lower(${users.username})`)),
);

/** A row if any person exists (built-in accounts do not count). */
export const findAnyUser = query(
  build
    .select({ id: users.id })
    .from(users)
    .where(eq(users.login_type, "password"))
    .orderBy(asc(users.created_at))
    .limit(1),
);

export const insertUser = insertInto(users);
export const updateUser = updateBy(users, users.id);

/** A row when the user has a seat already. Parameters: {id}. */
const findSeat = query(
  build
    .select({ id: users.id })
    .from(users)
    .where(and(eqParam(users.id), eq(users.has_ai_seat, true))),
);

/**
 * Returns the statements that give a user a seat with their first chat; none if they have one, since writing users invalidates all cached
 * callers.
 */
export const assignSeat = async (store: Pick<Store, "get">, id: string): Promise<Statement[]> =>
  (await store.get(findSeat({ id }))) ? [] : [updateUser(id, { has_ai_seat: true })];

/** Records that the user was active. Reactivates a dormant account; a suspended one stays suspended. */
export const touchUser = statement<{ id: string; now: number }>(
  build
    .update(users)
    .set({
      last_seen_at: sql.placeholder("now") as never,
      status: sql`case ${users.status} when 'dormant' then 'active' else ${users.status} end`,
    })
    .where(eqParam(users.id)),
);

/**
 * A guard for creating something that belongs to the user: rejects the batch as `stale` when they are deleted. It matches no row of an
 * existing user, so that it does not lock the row against other writes; its name in `alone` prevents concurrent deletion.
 */
export const guardUser = statement<{ id: string }>(
  build
    .update(users)
    .set({ deleted: true })
    .where(and(eqParam(users.id), eq(users.deleted, true))),
  { expect: 0, alone: "users", touches: [] },
);

/** Rejected as `stale` while the user owns a workspace. The name and the address become available again. */
export const deleteUser = statement<{ id: string; now: number }>(
  build
    .update(users)
    .set({ deleted: true, updated_at: sql.placeholder("now") as never })
    .where(
      and(
        eqParam(users.id),
        isNotDeleted,
        notExists(
          build
            .select({ one: sql`1` })
            .from(workspaces)
            .where(and(eq(workspaces.owner_id, users.id), eq(workspaces.deleted, false))),
        ),
      ),
    ),
  { expect: 1, alone: "users" },
);

/** A guard: rejects the batch as `stale` when this user is no longer an owner. Two owners cannot demote each other concurrently. */
export const guardOwner = guard<{ id: string }>(isOwner, { alone: "owners" });

/** Another owner who may sign in. Parameters: {id}. */
export const findOtherOwner = query(
  build
    .select({ id: users.id })
    .from(users)
    .where(and(ne(users.id, sql.placeholder("id")), isOwner))
    .limit(1),
);

/**
 * A guard: rejects the batch as `stale` when the password was changed since this hash was compared. Comparing is slow, and the old password
 * must not sign anyone in after a change.
 */
export const guardPassword = guard<{ id: string; password_hash: string }>(eqParam(users.password_hash));

/** A guard: rejects the batch as `stale` when the user is suspended, for example while their password was compared. */
export const guardNotSuspended = guard<{ id: string }>(ne(users.status, "suspended"));

/** A guard: rejects the batch as `stale` when this user was given a role of the site or of an organization. */
export const guardWithoutRoles = guard<{ id: string }>(
  and(
    sql`json_array_length(${users.roles}) = 0`,
    sql`not exists (select 1 from ${organization_members} where ${organization_members.user_id} = ${users.id} and json_array_length(${organization_members.roles}) > 0)`,
  ),
);
