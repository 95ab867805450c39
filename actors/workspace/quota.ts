// Checks a build's daily cost against the owner's quota, which is the sum of the allowances of the owner's groups (rule GR-7). Prebuilds,
// and organizations without any allowance, have no limit.
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { findAnyAllowance, sumAllowance } from "#db/users/groups.ts";
import { guardQuota, sumDailyCost } from "#db/workspaces/quota.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { ProvisionError } from "#src/provisioners/provisioner.ts";
import type { WorkspaceState } from "./decision.ts";

type StoreReader = Pick<Store, "get">;

/** Returns the consumed and the allowed credits per day. A `budget` of -1 means no limit. */
export const computeQuota = async (
  store: StoreReader,
  owner: { readonly organization_id: string; readonly owner_id: string },
): Promise<{ readonly consumed: number; readonly budget: number }> => {
  const { organization_id, owner_id } = owner;
  const consumed = (await store.get(sumDailyCost(owner)))?.consumed ?? 0;
  const isLimited = (await store.get(findAnyAllowance({ organization_id }))) !== undefined;
  if (!isLimited) return { consumed, budget: -1 };
  const allowed = await store.get(sumAllowance({ organization_id, user_id: owner_id }));
  return { consumed, budget: allowed?.budget ?? 0 };
};

/**
 * Returns guards for a batch that sets the latest build's cost, so that two workspaces together cannot exceed the quota. Throws
 * ProvisionError with INSUFFICIENT_QUOTA.
 */
export const buildQuotaGuards = async (
  store: StoreReader,
  { workspace, build }: Pick<WorkspaceState, "workspace" | "build">,
  daily_cost: number,
): Promise<Statement[]> => {
  if (daily_cost === 0 || build.transition === "delete" || workspace.owner_id === PREBUILDS_USER_ID) return [];
  const { consumed, budget } = await computeQuota(store, workspace);
  if (budget < 0) return [];
  const total = consumed - build.daily_cost + daily_cost;
  if (total > budget) {
    const message = `The build would cost ${daily_cost} credits a day. The owner's workspaces would then cost ${total}, and ${budget} are allowed.`;
    throw new ProvisionError(message, "INSUFFICIENT_QUOTA");
  }
  return [guardQuota({ workspace_id: workspace.id, daily_cost })];
};
