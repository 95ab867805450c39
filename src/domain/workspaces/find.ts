// Finds the workspace in a path and checks the caller's access.
import { Type as t } from "@sinclair/typebox";
import { AppError, forbidden, notFound } from "#base/errors.ts";
import { findWorkspaceAccessRow, type WorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canReplaceFiles, canSeeWorkspace, canStartStop, canUpdateWorkspace } from "../access.ts";
import type { DomainContext } from "../context.ts";

/** The path parameter of routes of one workspace. */
export const workspacePath = t.Object({
  workspace: t.String({ format: "uuid", description: "The ID of the workspace." }),
});

/**
 * Returns the access data of the workspace with this ID, including deleted ones. Rejects with 404 when it does not exist or is not visible.
 */
export const loadWorkspace = async (
  ctx: DomainContext,
  id: string,
  caller: UserCaller,
): Promise<WorkspaceAccessRow> => {
  const workspace = await ctx.store.get(findWorkspaceAccessRow({ id: id.toLowerCase() }));
  if (!workspace || !canSeeWorkspace(caller, workspace)) throw notFound();
  return workspace;
};

/** Like `loadWorkspace`, for operations that require an existing workspace. Rejects with 410 when it is deleted. */
export const findExistingWorkspace = async (
  ctx: DomainContext,
  id: string,
  caller: UserCaller,
): Promise<WorkspaceAccessRow> => {
  const workspace = await loadWorkspace(ctx, id, caller);
  if (workspace.deleted) throw workspaceGone();
  return workspace;
};

/** Returns a 410 for a deleted workspace that was not requested explicitly (facts/platform 3.3). */
export const workspaceGone = (): AppError =>
  new AppError("gone", "The workspace has been deleted.", {
    detail: "Set include_deleted=true to read deleted workspaces.",
  });

/** Returns an existing workspace the caller can change. Rejects with 403, 404 or 410 otherwise. */
export const findChangeableWorkspace = async (
  ctx: DomainContext,
  id: string,
  caller: UserCaller,
): Promise<WorkspaceAccessRow> => {
  const workspace = await findExistingWorkspace(ctx, id, caller);
  if (!canUpdateWorkspace(caller, workspace)) throw forbidden("You may not change this workspace.");
  return workspace;
};

/**
 * Like `findChangeableWorkspace`, for changes that only reduce what a workspace does. An owner who was removed from the organization may make
 * these, too.
 */
export const loadStoppableWorkspace = async (
  ctx: DomainContext,
  id: string,
  caller: UserCaller,
): Promise<WorkspaceAccessRow> => {
  const workspace = await findExistingWorkspace(ctx, id, caller);
  if (!canStartStop(caller, workspace)) throw forbidden("You may not change this workspace.");
  return workspace;
};

/** Returns an existing workspace whose files and copies the caller may replace and delete. Rejects with 403, 404 or 410 otherwise. */
export const findWorkspaceToReplaceFiles = async (
  ctx: DomainContext,
  id: string,
  caller: UserCaller,
): Promise<WorkspaceAccessRow> => {
  const workspace = await findChangeableWorkspace(ctx, id, caller);
  if (canReplaceFiles(caller, workspace)) return workspace;
  throw forbidden(
    "The files of this workspace and their copies are its owner's. Ask the owner to share the workspace with you as admin.",
  );
};

/** Returns the caller in the form used by the workspace's activity. */
export const toActivityUser = (caller: UserCaller) => ({
  kind: "user" as const,
  id: caller.user_id,
  name: caller.username,
});
