// Who may invite whom to what. An invitation gives with the rights of the person who made it: they are asked for when it is made and again
// when it is accepted, so that nobody gives more than they may give at that moment (rule IV-3).
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

/** Whether the caller may invite people to the organization at all. */
export const mayInvite = (caller: UserCaller, organization_id: string): boolean =>
  mayCreateUsers(caller) || mayManageMembers(caller, organization_id);

/** Returns why the caller may not give this; undefined when they may. */
export const whyNotGive = (caller: UserCaller, gift: Gift): string | undefined => {
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

/** Rejects with 403 unless the caller may give all of it. */
export const mustBeAbleToGive = (caller: UserCaller, gift: Gift): void => {
  const reason = whyNotGive(caller, gift);
  if (reason !== undefined) throw forbidden(reason);
};
