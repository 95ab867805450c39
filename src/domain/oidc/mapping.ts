// What the groups of a person at a provider make of them here, applied at each sign-in: roles of the site, memberships of organizations
// and roles there, exactly as the mapping says (rule OI-7). The last owner stays one, and nobody leaves the default organization.

import type { Statement } from "#db/engine/sql.ts";
import { audited } from "#db/reports/audit/audit.ts";
import { endMembership, insertMember, listMemberships, updateMember } from "#db/users/members.ts";
import { findOrganizationByName } from "#db/users/organizations.ts";
import { findOtherOwner, type User, updateUser } from "#db/users/users.ts";
import type { DomainContext } from "../context.ts";
import { userChanged } from "../users/audit.ts";
import type { Identity } from "./identity.ts";

const isSame = (a: readonly string[], b: readonly string[]): boolean => Bun.deepEquals([...a].sort(), [...b].sort());

/** The changes that bring the user to what the provider says, with their entries of the audit log. */
export const mapped = async (
  ctx: DomainContext,
  { roles, memberships }: Identity,
  { user, isNew }: { user: User; isNew: boolean },
): Promise<Statement[]> => [
  ...(await mappedRoles(ctx, user, roles)),
  ...(await mappedMemberships(ctx, user, isNew, memberships)),
];

const mappedRoles = async (ctx: DomainContext, user: User, given: string[] | undefined): Promise<Statement[]> => {
  if (!given) return [];
  const isLastOwner =
    user.roles.includes("owner") && !given.includes("owner") && !(await ctx.store.get(findOtherOwner({ id: user.id })));
  const roles = isLastOwner ? [...given, "owner"] : given;
  if (isSame(roles, user.roles)) return [];
  const now = ctx.clock.now();
  return [updateUser(user.id, { roles, updated_at: now }), userChanged(user, { roles }, now)];
};

const mappedMemberships = async (
  ctx: DomainContext,
  user: User,
  isNew: boolean,
  wanted: Identity["memberships"],
): Promise<Statement[]> => {
  const statements: Statement[] = [];
  const now = ctx.clock.now();
  const present = isNew ? [] : await ctx.store.all(listMemberships({ user_id: user.id }));
  for (const [name, given] of Object.entries(wanted)) {
    const organization = await ctx.store.get(findOrganizationByName({ name }));
    // Mentioned in a setting and not made yet, or deleted since: nobody is a member of it.
    if (!organization) continue;
    const pair = { organization_id: organization.id, user_id: user.id };
    // A new user is put into the default organization by the sign-up itself.
    const known =
      isNew && organization.is_default ? [] : present.find((one) => one.organization_id === organization.id)?.roles;
    // A mapping gives and takes roles in the default organization. Its members stay members, however they came in.
    const roles = given ?? (organization.is_default && known ? [] : undefined);
    const about = {
      now,
      resource_type: "organization_member" as const,
      resource_id: user.id,
      target: user.username,
      user_id: user.id,
      organization_id: organization.id,
    };
    if (known && !roles) {
      const before = { ...pair, username: user.username, roles: known };
      statements.push(...endMembership(pair), audited({ ...about, action: "delete", before }));
    } else if (!known && roles) {
      const after = { ...pair, username: user.username, roles };
      statements.push(
        insertMember({ ...pair, roles, created_at: now, updated_at: now }),
        audited({ ...about, action: "create", after }),
      );
    } else if (known && roles && !isSame(known, roles)) {
      statements.push(
        updateMember({ ...pair, roles, updated_at: now }),
        audited({ ...about, action: "write", before: { roles: known }, after: { roles } }),
      );
    }
  }
  return statements;
};
