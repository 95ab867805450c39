// Applies the group mapping at each sign-in: site roles, organization memberships and roles there are set exactly as the mapping says (rule
// OI-7). The last owner keeps that role, and everyone stays in the default organization.

import type { Statement } from "#db/engine/sql.ts";
import { insertNotification } from "#db/notifications/notifications.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { endMembership, insertMember, listMemberships, updateMember } from "#db/users/members.ts";
import { findOrganizationByName } from "#db/users/organizations.ts";
import { findOtherOwner, guardOwner, type User, updateUser } from "#db/users/users.ts";
import { markLossesOfMemberRoles, markLossesOfRoles } from "#db/workspaces/sharing.ts";
import type { DomainContext } from "../context.ts";
import { endSharesWith } from "../organizations/end-shares.ts";
import { auditUserChanged } from "../users/audit.ts";
import type { Identity, Provider } from "./identity.ts";
import type { Person } from "./person.ts";

const findMissing = (before: readonly string[], after: readonly string[]): string[] =>
  before.filter((role) => !after.includes(role));

const isSame = (a: readonly string[], b: readonly string[]): boolean => Bun.deepEquals([...a].sort(), [...b].sort());

/** Returns the changes that make the user match the provider, with their audit log entries. */
export const applyMapping = async (
  ctx: DomainContext,
  provider: Provider,
  { roles, memberships }: Identity,
  person: Pick<Person, "user" | "memberships">,
): Promise<Statement[]> => {
  const { user } = person;
  const lost: string[] = [];
  const statements = [
    ...(await applyRoles(ctx, user, roles, lost)),
    ...(await applyMemberships(ctx, person, memberships, lost)),
  ];
  return lost.length === 0 ? statements : [...statements, notifyAccessRemoved(ctx, user, provider, lost)];
};

/** Notifies the user of the access they have lost, and which provider caused it. */
const notifyAccessRemoved = (
  ctx: DomainContext,
  { id }: User,
  { name }: Provider,
  lost: readonly string[],
): Statement => {
  const now = ctx.clock.now();
  return insertNotification({
    now,
    user_id: id,
    kind: "rights_taken",
    values: { provider: name, lost: lost.join(", ") },
    path: "/account",
    dedupe: `rights_taken:${now}`,
  });
};

const applyRoles = async (
  ctx: DomainContext,
  user: User,
  granted: string[] | undefined,
  lost: string[],
): Promise<Statement[]> => {
  if (!granted) return [];
  const losesOwner = user.roles.includes("owner") && !granted.includes("owner");
  const otherOwner = losesOwner ? await ctx.store.get(findOtherOwner({ id: user.id })) : undefined;
  const roles = losesOwner && !otherOwner ? [...granted, "owner"] : granted;
  if (isSame(roles, user.roles)) return [];
  lost.push(...findMissing(user.roles, roles).map((role) => `the role ${role}`));
  const now = ctx.clock.now();
  return [
    // Two owners must not lose the role at the same moment.
    ...(otherOwner ? [guardOwner({ id: otherOwner.id })] : []),
    ...markLossesOfRoles(user, roles, now),
    updateUser(user.id, { roles, updated_at: now }),
    auditUserChanged(user, { roles }, now),
  ];
};

const applyMemberships = async (
  ctx: DomainContext,
  { user, memberships }: Pick<Person, "user" | "memberships">,
  mapped: Identity["memberships"],
  lost: string[],
): Promise<Statement[]> => {
  const statements: Statement[] = [];
  const now = ctx.clock.now();
  // For a new account, `memberships` holds the ones that it is being created with.
  const current = memberships ?? (await ctx.store.all(listMemberships({ user_id: user.id })));
  for (const [name, mappedRoles] of Object.entries(mapped)) {
    const organization = await ctx.store.get(findOrganizationByName({ name }));
    // The organization is named in a setting but was deleted or does not exist yet.
    if (!organization) continue;
    const pair = { organization_id: organization.id, user_id: user.id };
    const currentRoles = current.find((one) => one.organization_id === organization.id)?.roles;
    // A mapping changes roles in the default organization, but its members stay members however they joined.
    const roles = mappedRoles ?? (organization.is_default && currentRoles ? [] : undefined);
    const auditFields = {
      now,
      resource_type: "organization_member" as const,
      resource_id: user.id,
      target: user.username,
      user_id: user.id,
      organization_id: organization.id,
    };
    if (currentRoles && !roles) {
      lost.push(`the organization ${name}`);
      const before = { ...pair, username: user.username, roles: currentRoles };
      statements.push(...endMembership(pair, now), insertAudit({ ...auditFields, action: "delete", before }));
    } else if (!currentRoles && roles) {
      // A former member must not regain what was shared with them before.
      if (!memberships) await endSharesWith(ctx, pair);
      const after = { ...pair, username: user.username, roles };
      statements.push(
        insertMember({ ...pair, roles, created_at: now, updated_at: now }),
        insertAudit({ ...auditFields, action: "create", after }),
      );
    } else if (currentRoles && roles && !isSame(currentRoles, roles)) {
      lost.push(...findMissing(currentRoles, roles).map((role) => `the role ${role} in ${name}`));
      statements.push(
        ...markLossesOfMemberRoles(pair, currentRoles, roles, now),
        updateMember({ ...pair, roles, updated_at: now }),
        insertAudit({ ...auditFields, action: "write", before: { roles: currentRoles }, after: { roles } }),
      );
    }
  }
  return statements;
};
