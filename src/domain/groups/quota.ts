// What someone's workspaces cost a day in an organization, for themselves and for those who look after members.
import { computeQuota } from "#actors/workspace/quota.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { WorkspaceQuota } from "#schema/users/group.ts";
import type { DomainContext } from "../context.ts";
import { findMember } from "../organizations/members.ts";

/** 404 for who is no member, or whom the caller may not see. */
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
