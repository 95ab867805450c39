// What an open connection depends on alongside its key: it ends when its caller may no longer see the thing it is about.
import { findWorkspacePlace } from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { WorkspaceTarget } from "./access.ts";
import type { DomainContext } from "./context.ts";

/** What a connection depends on, alongside its key. */
export type Access = {
  /** The same for all connections of a user that depend on the same. */
  readonly key: string;
  /** The id under which `access_changed` is announced. */
  readonly topic: string;
  /** Whether the caller, with the roles and memberships of this moment, still may. */
  readonly holds: (caller: UserCaller) => Promise<boolean>;
  /** The reason to give when it is lost. */
  readonly lost: string;
};

/** Seeing (`maySeeWorkspace`) or working in (`mayUseWorkspace`) a workspace. */
export const workspaceAccess = (
  { store }: Pick<DomainContext, "store">,
  workspace_id: string,
  may: (caller: UserCaller, workspace: WorkspaceTarget) => boolean,
): Access => ({
  key: `${may.name} ${workspace_id}`,
  topic: workspace_id,
  lost: "you no longer have access to the workspace",
  holds: async (caller) => {
    const workspace = await store.get(findWorkspacePlace({ id: workspace_id }));
    return workspace !== undefined && may(caller, workspace);
  },
});
