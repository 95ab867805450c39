// Membership of users in organizations.
import { and, asc, count, desc, eq, sql } from "drizzle-orm";
import { build, eqParam, insertInto, query, type Statement, statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { group_members } from "../schema/groups.ts";
import { organization_members, organizations, users } from "../schema/users.ts";
import { markLossesOfMember } from "../workspaces/sharing.ts";

export type Member = typeof organization_members.$inferSelect;

export const listMemberships = query(
  build
    .select({ organization_id: organization_members.organization_id, roles: organization_members.roles })
    .from(organization_members)
    .where(eqParam(organization_members.user_id)),
);

/**
 * The organization that a person has belonged to for the longest: {user_id}. Administrators of other organizations cannot change it by
 * adding the person there.
 */
export const findHomeOrganization = query(
  build
    .select({ id: organization_members.organization_id })
    .from(organization_members)
    .innerJoin(organizations, eq(organizations.id, organization_members.organization_id))
    .where(and(eqParam(organization_members.user_id), eq(organizations.deleted, false)))
    .orderBy(asc(organization_members.created_at), desc(organizations.is_default), asc(organizations.id))
    .limit(1),
);

const listGroupIds = query(
  build.select({ id: group_members.group_id }).from(group_members).where(eqParam(group_members.user_id)),
);

/** A user's roles by organization, and IDs of their groups. The group of all members has its organization's ID. */
export type Memberships = {
  readonly organizations: Readonly<Record<string, string[]>>;
  readonly groups: readonly string[];
};

/** Reads the current memberships; none for a user who does not exist. */
export const readMemberships = async (store: Pick<Store, "all">, user_id: string): Promise<Memberships> => {
  const [rows, groups] = await Promise.all([
    store.all(listMemberships({ user_id })),
    store.all(listGroupIds({ user_id })),
  ]);
  return {
    organizations: Object.fromEntries(rows.map(({ organization_id, roles }) => [organization_id, roles])),
    groups: [...rows.map(({ organization_id }) => organization_id), ...groups.map(({ id }) => id)],
  };
};

const isMember = and(eqParam(organization_members.organization_id), eqParam(organization_members.user_id));

/** Members of an organization with their users, by username. */
export const listMembers = query(
  build
    .select({ member: organization_members, user: users })
    .from(organization_members)
    .innerJoin(users, eq(users.id, organization_members.user_id))
    .where(and(eqParam(organization_members.organization_id), eq(users.deleted, false)))
    .orderBy(asc(sql`lower(${users.username})`))
    .limit(sql.placeholder("limit"))
    .offset(sql.placeholder("offset")),
);

/** One member with their user. */
export const findMemberWithUser = query(
  build
    .select({ member: organization_members, user: users })
    .from(organization_members)
    .innerJoin(users, eq(users.id, organization_members.user_id))
    .where(and(isMember, eq(users.deleted, false))),
);

export const countMembers = query(
  build
    .select({ count: count() })
    .from(organization_members)
    .innerJoin(users, eq(users.id, organization_members.user_id))
    .where(and(eqParam(organization_members.organization_id), eq(users.deleted, false))),
);

export const insertMember = insertInto(organization_members);
export const updateMember = statement<{
  organization_id: string;
  user_id: string;
  roles: string[];
  updated_at: number;
}>(
  build
    .update(organization_members)
    .set({ roles: sql.placeholder("roles") as never, updated_at: sql.placeholder("updated_at") as never })
    .where(isMember),
  { expect: 1 },
);
type Pair = { readonly organization_id: string; readonly user_id: string };

const deleteMember = statement<Pair>(build.delete(organization_members).where(isMember), { expect: 1 });
const removeFromGroups = statement<Pair>(
  build.delete(group_members).where(and(eqParam(group_members.user_id), eqParam(group_members.organization_id))),
);

/**
 * Ends a membership, including the organization's groups (rule GR-3), and records the loss of access (rule AG-28). Rejected as stale when
 * none exists. The membership must come first: a transaction that adds the member to a group holds its row until the group membership is
 * visible.
 */
export const endMembership = (pair: Pair, now: number): Statement[] => [
  deleteMember(pair),
  markLossesOfMember(pair, now),
  removeFromGroups(pair),
];

/** A guard: rejects the batch as `stale` when this is the person's only membership. */
export const guardOtherMembership = statement<Pair>(
  build
    .update(organization_members)
    .set({ updated_at: sql`${organization_members.updated_at}` })
    .where(
      and(
        eqParam(organization_members.user_id),
        sql`${organization_members.organization_id} = (select min(other.organization_id) from organization_members other
          where other.user_id = ${sql.placeholder("user_id")} and other.organization_id <> ${sql.placeholder("organization_id")})`,
      ),
    ),
  { expect: 1, alone: "users", touches: [] },
);

/** Ten of the organization's template administrators, those of the organization itself first. Parameters: {organization_id}. */
export const listTemplateAdministrators = query(
  build
    .select({ id: users.id, username: users.username, name: users.name, avatar_url: users.avatar_url })
    .from(users)
    .leftJoin(
      organization_members,
      and(
        eq(organization_members.user_id, users.id),
        eq(organization_members.organization_id, sql.placeholder("organization_id")),
      ),
    )
    .where(
      and(
        eq(users.deleted, false),
        eq(users.status, "active"),
        sql`(exists (select 1 from json_each(${users.roles}) where value in ('owner', 'template-admin')) or exists
          (select 1 from json_each(coalesce(${organization_members.roles}, '[]')) where value in
          ('organization-admin', 'organization-template-admin')))`,
      ),
    )
    .orderBy(sql`${organization_members.user_id} is null`, sql`lower(${users.username})`)
    .limit(10),
);
