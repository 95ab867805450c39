// Finds the build in a path, for callers who can see its workspace.
import { notFound } from "#base/errors.ts";
import { findBuildView, type WorkspaceView } from "#db/workspaces/views.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canSeeWorkspace } from "../access.ts";
import type { DomainContext } from "../context.ts";

/** Returns the build with this ID of a workspace the caller can see. Rejects with 404 otherwise. */
export const loadBuild = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<WorkspaceView> => {
  const view = await ctx.store.get(findBuildView({ id: id.toLowerCase() }));
  if (!view || !canSeeWorkspace(caller, view.workspace)) throw notFound();
  return view;
};
