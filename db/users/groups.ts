// Groups of an organization and their members. The group of all members has no member rows, since it contains every member of the
// organization.
import { and, asc, count, eq, ne, sql } from "drizzle-orm";
import { deleteBudgetsOfGroup } from "../budgets/budgets.ts";
import { build, deleteBy, eqParam, insertInto, query, type Statement, statement, updateBy } from "../engine/sql.ts";
import { group_members, groups } from "../schema/groups.ts";
import { organization_members, users } from "../schema/users.ts";
import { markLossesOfGroup } from "../workspaces/sharing.ts";

export type GroupRow = typeof groups.$inferSelect;

/** {id}. The group of all members is found only after one of its properties was set. */
export const findGroup = query(build.select().from(groups).where(eqParam(groups.id)));

/** Case-insensitive. Parameters: {organization_id, name}. */
export const findGroupByName = query(
  build
    .select()
    .from(groups)
    .where(and(eqParam(groups.organization_id), sql`lower(${groups.name}) = lower(${sql.placeholder("name")})`)),
);

/** Ordered by name. Parameters: {organization_id}. */
export const listGroupsByOrganization = query(
  build
    .select()
    .from(groups)
    .where(eqParam(groups.organization_id))
    .orderBy(asc(sql`lower(${groups.name})`))
    .limit(1000),
);

/** Several groups by ID: {ids} is a JSON array. */
export const listGroups = query(
  build
    .select()
    .from(groups)
    .where(sql`${groups.id} in (select value from json_each(${sql.placeholder("ids")}))`)
    .orderBy(asc(sql`lower(${groups.name})`)),
);

/** Members that are not deleted, by username. Parameters: {group_id, limit, offset}. Not for the group of all members. */
export const listGroupMembers = query(
  build
    .select({ user: users })
    .from(group_members)
    .innerJoin(users, eq(users.id, group_members.user_id))
    .where(and(eqParam(group_members.group_id), eq(users.deleted, false)))
    .orderBy(asc(sql`lower(${users.username})`))
    .limit(sql.placeholder("limit"))
    .offset(sql.placeholder("offset")),
);

/** Parameters: {group_id}. */
export const countGroupMembers = query(
  build
    .select({ count: count() })
    .from(group_members)
    .innerJoin(users, eq(users.id, group_members.user_id))
    .where(and(eqParam(group_members.group_id), eq(users.deleted, false))),
);

/** IDs of all members. Parameters: {group_id}. */
export const listGroupMemberIds = query(
  build.select({ user_id: group_members.user_id }).from(group_members).where(eqParam(group_members.group_id)),
);

export const insertGroup = insertInto(groups);
export const updateGroup = updateBy(groups, groups.id);

const deleteMembers = deleteBy(group_members, group_members.group_id);
const deleteOne = deleteBy(groups, groups.id);

/** Deletes the group with its memberships and budgets, and records the loss of access (rule AG-28). */
export const deleteGroup = (id: string, now: number): Statement[] => [
  markLossesOfGroup(id, now),
  deleteMembers(id),
  ...deleteBudgetsOfGroup(id),
  deleteOne(id),
];

type Membership = { readonly group_id: string; readonly organization_id: string; readonly user_id: string };

const insertMember = statement<Membership>(
  build
    .insert(group_members)
    .values({
      group_id: sql.placeholder("group_id") as never,
      user_id: sql.placeholder("user_id") as never,
      organization_id: sql.placeholder("organization_id") as never,
    })
    .onConflictDoNothing(),
);

/** A guard: rejects the batch as stale when the user is not a member of the organization. */
const guardMember = statement<Membership>(
  build
    .update(organization_members)
    .set({ updated_at: sql`updated_at` })
    .where(and(eqParam(organization_members.organization_id), eqParam(organization_members.user_id))),
  { expect: 1 },
);

/** Adds members of the organization to the group; existing ones stay. Rejected as stale when a user is not a member. */
export const addToGroup = (memberships: readonly Membership[]): Statement[] =>
  memberships.length === 0 ? [] : [guardMember(memberships), insertMember(memberships)];

const deleteMember = statement<{ readonly group_id: string; readonly user_id: string }>(
  build.delete(group_members).where(and(eqParam(group_members.group_id), eqParam(group_members.user_id))),
);

/** Removes users, and records the loss of access (rule AG-28). Ignores users who are not in the group. */
export const removeFromGroup = (group_id: string, user_ids: readonly string[], now: number): Statement[] =>
  user_ids.length === 0
    ? []
    : [markLossesOfGroup(group_id, now), deleteMember(user_ids.map((user_id) => ({ group_id, user_id })))];

/**
 * The sum of a user's allowances from their groups in an organization, including the group of all members. Parameters: {organization_id,
 * user_id}.
 */
export const sumAllowance = query(
  build
    .select({ budget: sql<number>`coalesce(sum(${groups.quota_allowance}), 0)` })
    .from(groups)
    .where(
      and(
        eqParam(groups.organization_id),
        sql`(${groups.id} = ${groups.organization_id} or ${groups.id} in (select group_id from group_members
          where user_id = ${sql.placeholder("user_id")}))`,
      ),
    ),
);

/** A row when any group of the organization has an allowance, which enables cost limits. Parameters: {organization_id}. */
export const findAnyAllowance = query(
  build
    .select({ id: groups.id })
    .from(groups)
    .where(and(eqParam(groups.organization_id), ne(groups.quota_allowance, 0)))
    .limit(1),
);
