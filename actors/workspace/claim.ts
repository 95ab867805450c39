// Claims a prebuild for an owner in one batch: changes the owner, the name and the times, adds the build of the claim, and moves the tokens
// of the running daemons to that build's agents (facts/platform 2.8, rules PB-7 to PB-9).

import type { Store } from "#db/engine/store.ts";
import { guardUser } from "#db/users/users.ts";
import type { BuildRow } from "#db/workspaces/builds.ts";
import { deletePortSharesByWorkspace } from "#db/workspaces/port-shares.ts";
import { claimPrebuildRow, findBuildInitiator } from "#db/workspaces/prebuilds.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { isRunning } from "./deadline.ts";
import type { Change, NewBuild, WorkspaceState } from "./decision.ts";
import { isDormant } from "./dormancy.ts";
import { toLossTime } from "./edits.ts";
import { withBuild } from "./schedule-edits.ts";
import { isUnclaimed } from "./schedule-rules.ts";

/** The new owner, name and times, and the build of the claim. */
export type Claim = Pick<
  WorkspaceRow,
  "owner_id" | "name" | "autostart_schedule" | "ttl_ms" | "automatic_updates" | "task_id"
> & {
  readonly build: NewBuild;
};

/** Returns the change of a claim. Returns undefined if the prebuild does not match or is not available. */
export const toClaimChange = (
  state: WorkspaceState,
  { build, ...ownerFields }: Claim,
  now: number,
): Change | undefined => {
  const { workspace } = state;
  const isAvailable = isUnclaimed(workspace) && !workspace.deleted && !isDormant(workspace) && isRunning(state);
  if (!isAvailable || state.build.initiator_id !== PREBUILDS_USER_ID) return undefined;
  const { template_version_id, template_version_preset_id } = state.build;
  if (template_version_id !== build.template_version_id) return undefined;
  if (template_version_preset_id !== build.template_version_preset_id) return undefined;
  const { user_acl, group_acl } = workspace;
  const wasShared = Object.keys(user_acl).length + Object.keys(group_acl).length > 0;
  // Earlier versions allowed sharing a prebuild (rule AG-28).
  const access_lost_at = wasShared ? toLossTime(state, now) : workspace.access_lost_at;
  const cleared = { favorite: false, user_acl: {}, group_acl: {}, access_lost_at };
  const patch = { ...ownerFields, ...cleared, last_used_at: now, updated_at: now };
  const decision = withBuild(state, patch, build, [deletePortSharesByWorkspace(workspace.id)], now);
  if (decision.kind !== "change") return undefined;
  const { owner_id, name } = ownerFields;
  return {
    ...decision,
    // The new owner must still exist (rule ID-26).
    writes: [guardUser({ id: owner_id }), claimPrebuildRow({ id: workspace.id, owner_id, name }), ...decision.writes],
    // Template administrators could access the prebuild, so their open streams are checked again.
    events: [...decision.events, { topic: "access_changed" }],
  };
};

type ClaimCandidate = Pick<BuildRow, "workspace_id" | "build_number" | "initiator_id" | "transition">;

/** Returns true if this build claimed a prebuild. It is then the first build that was not requested by the prebuilds user. */
export const isClaim = async (
  store: Pick<Store, "get">,
  workspace: Pick<WorkspaceRow, "owner_id">,
  { workspace_id, build_number, initiator_id, transition }: ClaimCandidate,
): Promise<boolean> => {
  if (isUnclaimed(workspace) || transition !== "start" || initiator_id === PREBUILDS_USER_ID) return false;
  if (build_number < 2) return false;
  const previous = await store.get(findBuildInitiator({ workspace_id, build_number: build_number - 1 }));
  return previous?.initiator_id === PREBUILDS_USER_ID;
};
