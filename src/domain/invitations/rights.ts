// Decides who may invite whom to what. An invitation grants with its creator's access, which is checked when it is created and again when
// it is accepted, so that creators never grant more than they may at that moment (rule IV-3).
import { forbidden } from "#base/errors.ts";
import type { InvitationRow } from "#db/users/invitations.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import {
  mayCreateUsers,
  mayGiveOrganizationRoles,
  mayGiveSiteRoles,
  mayManageGroups,
  mayManageMembers,
} from "../access.ts";

export type Gift = Pick<InvitationRow, "roles" | "organization_id" | "organization_roles" | "group_ids">;

/** Returns whether the caller may invite people to the organization at all. */
export const mayInvite = (caller: UserCaller, organization_id: string): boolean =>
  mayCreateUsers(caller) || mayManageMembers(caller, organization_id);

/** Returns why the caller may not grant this; undefined if they may. */
export const whyNotGrant = (caller: UserCaller, gift: Gift): string | undefined => {
  const { organization_id } = gift;
  if (!mayInvite(caller, organization_id))
    return "To invite people you need the right to create users or to add members.";
  if (gift.roles.length > 0 && !mayGiveSiteRoles(caller)) return "Only an owner may give site roles.";
  if (gift.organization_roles.length > 0 && !mayGiveOrganizationRoles(caller, organization_id)) {
    return "Only an administrator of the organization may give roles in it.";
  }
  if (gift.group_ids.length > 0 && !mayManageGroups(caller, organization_id)) {
    return "You may not add people to groups of this organization.";
  }
  return undefined;
};

/** Rejects with 403 unless the caller may grant all of it. */
export const requireGrantable = (caller: UserCaller, gift: Gift): void => {
  const reason = whyNotGrant(caller, gift);
  if (reason !== undefined) throw forbidden(reason);
};
