// Ports of a workspace that others can open (specification "Port sharing", facts/platform 3.5).
import { forbidden } from "#base/errors.ts";
import { listPortShares } from "#db/workspaces/port-shares.ts";
import type { WorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import { canStartStop, canUseWorkspace } from "#domain/access.ts";
import { checkOwnerBelongs } from "#domain/builds/new-build.ts";
import { findExistingWorkspace, workspacePath } from "#domain/workspaces/find.ts";
import { DeletePortShare, PortShare, PortShares, UpsertPortShare } from "#schema/workspaces/port-share.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { Done, fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Port sharing"];
const user = true;
const params = workspacePath;

export const portShares = (ctx: ApiContext) => {
  const findChangeable = async (id: string, caller: UserCaller): Promise<WorkspaceAccessRow> => {
    const workspace = await findExistingWorkspace(ctx, id, caller);
    if (!canStartStop(caller, workspace)) throw forbidden("You may not share ports of this workspace.");
    return workspace;
  };
  return routes()
    .use(callers)
    .get(
      "/:workspace/port-share",
      async ({ caller, params }) => {
        const { id } = await findExistingWorkspace(ctx, params.workspace, caller);
        return { shares: await ctx.store.all(listPortShares({ workspace_id: id })) };
      },
      {
        user,
        params,
        response: { 200: PortShares, ...fails(400, 401, 404, 410) },
        detail: operation({
          tags,
          operationId: "listPortShares",
          summary: "List shared ports of a workspace",
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    )
    .post(
      "/:workspace/port-share",
      async ({ caller, params, body }) => {
        const workspace = await findChangeable(params.workspace, caller);
        // Sharing a port gives access to it, so administrators without access to the workspace can only unshare.
        if (!canUseWorkspace(caller, workspace)) throw forbidden("You may not share ports of this workspace.");
        await checkOwnerBelongs(ctx.store, workspace);
        const { id } = workspace;
        const { agent_name, port, protocol, share_level } = body;
        const by = caller.user_id === workspace.owner_id ? null : { id: caller.user_id, username: caller.username };
        await ctx.workspaces.ask(id, "sharePort", { agent_name, port, protocol, share_level, by });
        if (by) ctx.topics.publish("notified", workspace.owner_id, {});
        return { workspace_id: id, agent_name, port, share_level, protocol };
      },
      {
        user,
        params,
        body: UpsertPortShare,
        response: { 200: PortShare, ...fails(400, 401, 403, 404, 409, 410, 413, 503) },
        detail: operation({
          tags,
          operationId: "sharePort",
          summary: "Share a port of a workspace",
          description:
            "Creates or updates a share, identified by agent name and port. The template limits the sharing level.",
          example: {
            agent_name: "main",
            port: 3000,
            protocol: "http",
            share_level: "authenticated",
          },
          audit: target.creates(target.newPortShare, { needsBody: true }),
          access: "owner",
          scope: "workspace:share",
          changesAccess: "workspace:share",
          placement: "workspace",
        }),
      },
    )
    .delete(
      "/:workspace/port-share",
      async ({ caller, params, body }) => {
        const { id } = await findChangeable(params.workspace, caller);
        const { agent_name, port } = body;
        await ctx.workspaces.ask(id, "unsharePort", { agent_name, port });
        return new Response(null, { status: 200 });
      },
      {
        user,
        params,
        body: DeletePortShare,
        response: { 200: Done, ...fails(400, 401, 403, 404, 410, 413, 503) },
        detail: operation({
          tags,
          operationId: "unsharePort",
          summary: "Stop sharing a port of a workspace",
          description: "Returns 404 if the port is not shared.",
          example: { agent_name: "main", port: 3000 },
          audit: target.deletes(target.portShare, { needsBody: true }),
          access: "owner",
          scope: "workspace:share",
          changesAccess: "workspace:share",
          placement: "workspace",
        }),
      },
    );
};
