// Whether the caller may change a workspace, and how its record names them.
import { forbidden } from "#base/errors.ts";
import type { WorkspacePlace } from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { mayUpdateWorkspace } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { livingWorkspaceAt } from "./workspace.ts";

/** A workspace that is there and that the caller may change; 403, 404 or 410 otherwise. */
export const changeableAt = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<WorkspacePlace> => {
  const place = await livingWorkspaceAt(ctx, id, caller);
  if (!mayUpdateWorkspace(caller, place)) throw forbidden("You may not change this workspace.");
  return place;
};

/** The caller as the workspace's record names people. */
export const byUser = (caller: UserCaller) => ({ kind: "user" as const, id: caller.user_id, name: caller.username });
