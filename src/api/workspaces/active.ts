// Finds the workspace of a request that reports activity, which users and workspace agents may send (specification, Authentication 4).
import { notFound } from "#base/errors.ts";
import { findChangeableWorkspace, toActivityUser } from "#domain/workspaces/find.ts";
import type { ApiContext } from "../context.ts";
import { getCaller, getUser } from "../http/caller.ts";

/**
 * Returns a workspace that the user may change, or the agent's own workspace. `user_id` is the caller or, for an agent, its workspace's
 * owner. Rejects with 403, 404 or 410.
 */
export const loadActiveWorkspace = async (ctx: ApiContext, id: string, request: Request) => {
  const caller = getCaller(request);
  if (caller.kind === "agent") {
    const { workspace_id, build_id, owner_id: user_id, agent_id, agent_name: name } = caller;
    if (workspace_id !== id.toLowerCase()) throw notFound();
    return { id: workspace_id, build_id, user_id, by: { kind: caller.kind, id: agent_id, name } };
  }
  const user = getUser(request);
  const workspace = await findChangeableWorkspace(ctx, id, user);
  return { id: workspace.id, build_id: workspace.latest_build_id, user_id: user.user_id, by: toActivityUser(user) };
};
