// Membership of users in organizations.
import { and, asc, count, eq, sql } from "drizzle-orm";
import { build, deleteBy, given, insertInto, query, statement } from "../engine/sql.ts";
import { organization_members, users } from "../schema/users.ts";

export type Member = typeof organization_members.$inferSelect;

export const listMemberships = query(
  build
    .select({ organization_id: organization_members.organization_id, roles: organization_members.roles })
    .from(organization_members)
    .where(given(organization_members.user_id)),
);

const ofMember = and(given(organization_members.organization_id), given(organization_members.user_id));

/** Members of an organization with their users, by username. */
export const listMembers = query(
  build
    .select({ member: organization_members, user: users })
    .from(organization_members)
    .innerJoin(users, eq(users.id, organization_members.user_id))
    .where(and(given(organization_members.organization_id), eq(users.deleted, false)))
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
    .where(and(ofMember, eq(users.deleted, false))),
);

export const countMembers = query(
  build
    .select({ count: count() })
    .from(organization_members)
    .innerJoin(users, eq(users.id, organization_members.user_id))
    .where(and(given(organization_members.organization_id), eq(users.deleted, false))),
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
    .where(ofMember),
  { expect: 1 },
);
export const deleteMember = statement<{ organization_id: string; user_id: string }>(
  build.delete(organization_members).where(ofMember),
  { expect: 1 },
);

/** Ends every membership, when the organization is deleted. */
export const deleteMembersOf = deleteBy(organization_members, organization_members.organization_id);
