// Members of an organization and their roles (facts/platform 9.3 and 3.8).
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import { conflict, forbidden, invalid, notFound } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { type AuditedChange, insertAudit } from "#db/reports/audit/audit.ts";
import {
  countMembers,
  endMembership,
  findMemberWithUser,
  guardOtherMembership,
  insertMember,
  listMembers,
  type Member as MemberRow,
  updateMember,
} from "#db/users/members.ts";
import { guardUser, type User as UserRow } from "#db/users/users.ts";
import { markLossesOfMemberRoles } from "#db/workspaces/sharing.ts";
import type { Page } from "#schema/page.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { Member } from "#schema/users/member.ts";
import { canGiveOrganizationRoles, canManageMembers, canReadMembers } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { requireOwnKey } from "../factors/proof.ts";
import { endProvisionerKeysCreatedBy } from "../provisioners/keys.ts";
import { loadAnyUser } from "../users/find.ts";
import { presentRole } from "../users/present.ts";
import { checkOrganizationRoles } from "../users/site-roles.ts";
import { endSharesWith } from "./end-shares.ts";

type Pair = { readonly organization_id: string; readonly user_id: string };

const presentMember = (member: MemberRow, user: UserRow): Member => ({
  user_id: user.id,
  organization_id: member.organization_id,
  username: user.username,
  name: user.name,
  email: user.email,
  avatar_url: user.avatar_url,
  status: user.status,
  login_type: user.login_type,
  last_seen_at: toOptionalRfc3339(user.last_seen_at),
  roles: member.roles.map((role) => presentRole(role, member.organization_id)),
  global_roles: user.roles.map((role) => presentRole(role)),
  created_at: toRfc3339(member.created_at),
  updated_at: toRfc3339(member.updated_at),
});

const loadMember = async (store: Store, pair: Pair): Promise<Member> => {
  const found = await store.get(findMemberWithUser(pair));
  if (!found) throw notFound();
  return presentMember(found.member, found.user);
};

/** Returns a member the caller can see. Rejects with 404. */
export const findMember = async (
  { store }: DomainContext,
  organization_id: string,
  user: string,
  caller: UserCaller,
): Promise<Member> => {
  const found = await loadAnyUser(store, user, caller);
  if (found.id !== caller.user_id && !canReadMembers(caller, organization_id)) throw notFound();
  return loadMember(store, { organization_id, user_id: found.id });
};

/** Returns the page that the caller can see: everyone for administrators of members, only themselves for others. */
export const listVisibleMembers = async (
  { store }: DomainContext,
  organization_id: string,
  caller: UserCaller,
  page: Page,
): Promise<{ members: Member[]; count: number }> => {
  if (!canReadMembers(caller, organization_id)) {
    const own = await store.get(findMemberWithUser({ organization_id, user_id: caller.user_id }));
    const rows = own && page.offset === 0 ? [presentMember(own.member, own.user)] : [];
    return { members: rows, count: own ? 1 : 0 };
  }
  const [rows, counted] = await Promise.all([
    store.scan(listMembers({ organization_id, ...page })),
    store.scan(countMembers({ organization_id })),
  ]);
  return { members: rows.map((row) => presentMember(row.member, row.user)), count: counted[0]?.count ?? 0 };
};

/** Rejects with 403, 404, or 409 for an existing member. */
export const addMember = async (
  ctx: DomainContext,
  organization_id: string,
  user: string,
  caller: UserCaller,
): Promise<Member> => {
  if (!canManageMembers(caller, organization_id)) {
    throw forbidden("You may not add members to this organization.");
  }
  const { store, clock, topics } = ctx;
  const found = await loadAnyUser(store, user, caller);
  const pair = { organization_id, user_id: found.id };
  const now = clock.now();
  // Shares left by a crash during an earlier removal must not become valid again.
  if (!(await store.get(findMemberWithUser(pair)))) await endSharesWith(ctx, pair);
  await store
    .commit([
      guardUser({ id: found.id }),
      insertMember({ ...pair, roles: [], created_at: now, updated_at: now }),
      writeAuditEntry(pair, found.username, { action: "create", after: { ...pair, username: found.username }, now }),
    ])
    .catch((error) => {
      if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
      throw conflict("This user is a member already.");
    });
  topics.publish("access_changed", pair.user_id, {});
  return loadMember(store, pair);
};

/**
 * Removes a member, or lets the caller leave. Their workspaces stay; what was shared with them is revoked (rule SH-13). Rejects with 403 or
 * 404. A caller who belongs to no other organization cannot leave: 403, or 400 for administrators of members.
 */
export const removeMember = async (
  ctx: DomainContext,
  organization_id: string,
  user: string,
  caller: UserCaller,
): Promise<void> => {
  const ownPair = { organization_id, user_id: caller.user_id };
  const isLeaving = (await loadAnyUser(ctx.store, user, caller)).id === caller.user_id;
  const { pair, member } = isLeaving
    ? { pair: ownPair, member: await loadMember(ctx.store, ownPair) }
    : await findManaged(ctx, { organization_id, user }, caller, canManageMembers);
  const { username, roles } = member;
  // Otherwise people who may not take a role away could remove the person who has it.
  if (!isLeaving && roles.length > 0 && !canGiveOrganizationRoles(caller, organization_id))
    throw forbidden("You may not remove members who have roles in this organization.");
  const before = { ...pair, username, roles: roles.map(({ name }) => name) };
  const now = ctx.clock.now();
  const statements = [
    ...(isLeaving ? [guardOtherMembership(pair)] : []),
    ...endMembership(pair, now),
    writeAuditEntry(pair, username, { action: "delete", before, now }),
  ];
  await ctx.store.commit(statements).catch((error) => {
    if (!isLeaving || !(error instanceof CommitError) || error.reason !== "stale") throw error;
    const message = "You cannot leave your only organization.";
    throw canManageMembers(caller, organization_id) ? invalid(message) : forbidden(message);
  });
  ctx.topics.publish("access_changed", pair.user_id, {});
  await endProvisionerKeysCreatedBy(ctx, pair.user_id);
  await endSharesWith(ctx, pair).catch((error) => {
    log("http").warn("could not end shares with a former member; they end when the user joins again: {error}", {
      error,
    });
  });
};

/** Replaces all roles there. Rejects with 400 for oneself, and with 403 or 404. */
export const setMemberRoles = async (
  ctx: DomainContext,
  { organization_id, user }: { readonly organization_id: string; readonly user: string },
  caller: UserCaller,
  names: readonly string[],
): Promise<Member> => {
  const { pair, member } = await findManaged(ctx, { organization_id, user }, caller, canGiveOrganizationRoles);
  await requireOwnKey(ctx, caller, "give roles");
  const now = ctx.clock.now();
  const roles = checkOrganizationRoles(names);
  const before = member.roles.map(({ name }) => name);
  const change = { before: { roles: before }, after: { roles } };
  await ctx.store.commit([
    ...markLossesOfMemberRoles(pair, before, roles, now),
    updateMember({ ...pair, roles, updated_at: now }),
    writeAuditEntry(pair, member.username, { action: "write", ...change, now }),
  ]);
  ctx.topics.publish("access_changed", pair.user_id, {});
  await endProvisionerKeysCreatedBy(ctx, pair.user_id);
  return loadMember(ctx.store, pair);
};

type CanManage = (caller: UserCaller, organization: string) => boolean;

/** Returns another member the caller may manage. Rejects with 404 when the member is not visible and with 400 for oneself. */
const findManaged = async (
  { store }: DomainContext,
  { organization_id, user }: { readonly organization_id: string; readonly user: string },
  caller: UserCaller,
  canManage: CanManage,
): Promise<{ pair: Pair; member: Member }> => {
  const found = await loadAnyUser(store, user, caller);
  const pair = { organization_id, user_id: found.id };
  const isSelf = found.id === caller.user_id;
  if (!isSelf && !canReadMembers(caller, organization_id)) throw notFound();
  const member = await loadMember(store, pair);
  if (!canManage(caller, organization_id)) throw forbidden("You may not manage the members of this organization.");
  if (isSelf) throw invalid("You cannot do this to yourself.");
  return { pair, member };
};

const writeAuditEntry = ({ organization_id, user_id }: Pair, target: string, change: AuditedChange) =>
  insertAudit({
    ...change,
    resource_type: "organization_member",
    resource_id: user_id,
    organization_id,
    target,
  });
