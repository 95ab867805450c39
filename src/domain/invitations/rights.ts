// Decides who may invite whom to what. An invitation grants with its creator's access, which is checked when it is created and again when
// it is accepted, so that creators never grant more than they may at that moment (rule IV-3).
import { forbidden } from "#base/errors.ts";
import type { InvitationRow } from "#db/users/invitations.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import {
  canCreateUsers,
  canGiveOrganizationRoles,
  canGiveSiteRoles,
  canManageGroups,
  canManageMembers,
} from "../access.ts";

export type Grant = Pick<InvitationRow, "roles" | "organization_id" | "organization_roles" | "group_ids">;

/** Returns whether the caller may invite people to the organization at all. */
export const canInvite = (caller: UserCaller, organization_id: string): boolean =>
  canCreateUsers(caller) || canManageMembers(caller, organization_id);

/** Returns why the caller may not grant this; undefined if they may. */
export const explainDenial = (caller: UserCaller, grant: Grant): string | undefined => {
  const { organization_id } = grant;
  if (!canInvite(caller, organization_id))
    return "To invite people you need the right to create users or to add members.";
  if (grant.roles.length > 0 && !canGiveSiteRoles(caller)) return "Only an owner may give site roles.";
  if (grant.organization_roles.length > 0 && !canGiveOrganizationRoles(caller, organization_id)) {
    return "Only an administrator of the organization may give roles in it.";
  }
  if (grant.group_ids.length > 0 && !canManageGroups(caller, organization_id)) {
    return "You may not add people to groups of this organization.";
  }
  return undefined;
};

/** Rejects with 403 unless the caller may grant all of it. */
export const requireGrantable = (caller: UserCaller, grant: Grant): void => {
  const reason = explainDenial(caller, grant);
  if (reason !== undefined) throw forbidden(reason);
};
