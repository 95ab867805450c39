// The access that an open connection depends on in addition to its key: the connection ends when its caller can no longer see the resource.
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { WorkspaceTarget } from "./access.ts";
import type { DomainContext } from "./context.ts";

export type Access = {
  /** Equal for all connections of a user that depend on the same access. */
  readonly key: string;
  /** The ID of the `access_changed` topic. */
  readonly topic: string;
  /** Returns whether the caller still has access, with their current roles and memberships. */
  readonly isStillAllowed: (caller: UserCaller) => Promise<boolean>;
  /** The reason to report when access is lost. */
  readonly lossReason: string;
};

/** Returns the access to see (`canSeeWorkspace`) or use (`canUseWorkspace`) a workspace. */
export const makeWorkspaceAccess = (
  { store }: Pick<DomainContext, "store">,
  workspace_id: string,
  may: (caller: UserCaller, workspace: WorkspaceTarget) => boolean,
): Access => ({
  key: `${may.name} ${workspace_id}`,
  topic: workspace_id,
  lossReason: "you no longer have access to the workspace",
  isStillAllowed: async (caller) => {
    const workspace = await store.get(findWorkspaceAccessRow({ id: workspace_id }));
    return workspace !== undefined && may(caller, workspace);
  },
});
