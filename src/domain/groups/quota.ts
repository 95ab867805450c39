// Returns the daily cost and the budget of a member's workspaces in an organization, to the member and to administrators.
import { computeQuota } from "#actors/workspace/quota.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { WorkspaceQuota } from "#schema/users/group.ts";
import type { DomainContext } from "../context.ts";
import { findMember } from "../organizations/members.ts";

/** Rejects with 404 when the user is not a member or the caller cannot see them. */
export const findQuota = async (
  ctx: DomainContext,
  organization_id: string,
  user: string,
  caller: UserCaller,
): Promise<WorkspaceQuota> => {
  const { user_id } = await findMember(ctx, organization_id, user, caller);
  const { consumed, budget } = await computeQuota(ctx.store, { organization_id, owner_id: user_id });
  return { credits_consumed: consumed, budget };
};
