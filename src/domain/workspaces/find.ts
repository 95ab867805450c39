// Finding the workspace that a path names, for a caller who may see or change it.
import { Type as t } from "@sinclair/typebox";
import { AppError, forbidden, notFound } from "#base/errors.ts";
import { findWorkspacePlace, type WorkspacePlace } from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { mayReplaceFiles, maySeeWorkspace, mayUpdateWorkspace } from "../access.ts";
import type { DomainContext } from "../context.ts";

/** The path parameter of every route of one workspace. */
export const workspacePath = t.Object({ workspace: t.String({ format: "uuid", description: "Workspace id." }) });

/** What decides about access to the workspace with this id. 404 when it is not there or not visible; deleted ones are found. */
export const workspaceAt = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<WorkspacePlace> => {
  const place = await ctx.store.get(findWorkspacePlace({ id: id.toLowerCase() }));
  if (!place || !maySeeWorkspace(caller, place)) throw notFound();
  return place;
};

/** The same for what only a workspace that is there can do: 410 when it is deleted. */
export const livingWorkspaceAt = async (
  ctx: DomainContext,
  id: string,
  caller: UserCaller,
): Promise<WorkspacePlace> => {
  const place = await workspaceAt(ctx, id, caller);
  if (place.deleted) throw gone();
  return place;
};

/** 410 for a deleted workspace that was not asked for (facts/platform 3.3). */
export const gone = (): AppError =>
  new AppError("gone", "The workspace has been deleted.", {
    detail: "Ask with include_deleted=true to see what is known of it.",
  });

/** A workspace that is there and that the caller may change; 403, 404 or 410 otherwise. */
export const changeableAt = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<WorkspacePlace> => {
  const place = await livingWorkspaceAt(ctx, id, caller);
  if (!mayUpdateWorkspace(caller, place)) throw forbidden("You may not change this workspace.");
  return place;
};

/** One whose files the caller may replace, and whose copies the caller may remove; 403, 404 or 410 otherwise. */
export const replaceableAt = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<WorkspacePlace> => {
  const place = await changeableAt(ctx, id, caller);
  if (mayReplaceFiles(caller, place)) return place;
  throw forbidden(
    "The files of this workspace and their copies are its owner's. Ask the owner to share the workspace with you as admin.",
  );
};

/** The caller as the workspace's record names people. */
export const byUser = (caller: UserCaller) => ({ kind: "user" as const, id: caller.user_id, name: caller.username });
