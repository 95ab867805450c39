// Pending invitations. An invitation that was accepted or revoked has no row; the audit log has its history.
import { and, count, desc, eq, lt, sql } from "drizzle-orm";
import {
  build,
  deleteBy,
  eqParam,
  findBy,
  insertInto,
  query,
  type Statement,
  statement,
  updateBy,
} from "../engine/sql.ts";
import { invitations } from "../schema/invitations.ts";
import { organizations, users } from "../schema/users.ts";

export type InvitationRow = typeof invitations.$inferSelect;

/** Parameters: {id}. */
export const findInvitation = findBy(invitations, invitations.id);
/** Parameters: {token_hash}. */
export const findInvitationByToken = findBy(invitations, invitations.token_hash);

/** Case-insensitive. Parameters: {email}. */
export const findInvitationByEmail = query(
  build
    .select()
    .from(invitations)
    .where(sql`lower(${invitations.email}) = lower(${sql.placeholder("email")})`),
);

/** Newest first, with the inviter and the organization. */
export const listInvitations = query(
  build
    .select({ invitation: invitations, inviter: users.username, organization: organizations.name })
    .from(invitations)
    .innerJoin(users, eq(users.id, invitations.invited_by))
    .innerJoin(organizations, eq(organizations.id, invitations.organization_id))
    .orderBy(desc(invitations.created_at), sql`lower(${invitations.email})`)
    .limit(2_000),
);

export const countInvitations = query(build.select({ count: count() }).from(invitations));

/** Rejected as `constraint` when the address was invited concurrently. */
export const insertInvitation = insertInto(invitations);
export const updateInvitation = updateBy(invitations, invitations.id);

const deleteUnchanged = statement<{ id: string; token_hash: string }>(
  build.delete(invitations).where(and(eqParam(invitations.id), eqParam(invitations.token_hash))),
  { expect: 1 },
);

/** Rejected as `stale` when it was used, revoked or renewed concurrently. */
export const useInvitation = ({ id, token_hash }: Pick<InvitationRow, "id" | "token_hash">): Statement =>
  deleteUnchanged({ id, token_hash });

export const deleteInvitation = deleteBy(invitations, invitations.id);

/** Deletes invitations that expired before {before}. */
export const deleteOldInvitations = statement<{ before: number }>(
  build.delete(invitations).where(lt(invitations.expires_at, sql.placeholder("before"))),
);
