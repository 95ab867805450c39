// Marks a workspace as its owner's favorite, which is listed first (facts/platform 2.8).
import { t } from "elysia";
import { forbidden } from "#base/errors.ts";
import { canFavorite } from "#domain/access.ts";
import { loadWorkspace, workspaceGone } from "#domain/workspaces/find.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const toRouteOptions = (operationId: string, summary: string) => ({
  user: true as const,
  params: t.Object({ workspace: t.String({ format: "uuid", description: "The ID of the workspace." }) }),
  response: { 204: NoContent, ...fails(400, 401, 403, 404, 410, 503) },
  detail: operation({
    tags: ["Workspaces"],
    operationId,
    summary,
    access: "owner_only",
    scope: "workspace:update",
    placement: "workspace",
    audit: target.writes(target.workspace),
  }),
});

export const favorite = (ctx: ApiContext) => {
  const setFavorite = async (id: string, caller: UserCaller, favorite: boolean): Promise<void> => {
    const workspace = await loadWorkspace(ctx, id, caller);
    if (workspace.deleted) throw workspaceGone();
    if (!canFavorite(caller, workspace)) throw forbidden("Only the owner of a workspace can mark it as a favorite.");
    await ctx.workspaces.ask(workspace.id, "favor", { favorite });
  };
  return routes()
    .use(callers)
    .put(
      "/:workspace/favorite",
      async ({ caller, params, status }) => {
        await setFavorite(params.workspace, caller, true);
        return status(204, undefined);
      },
      toRouteOptions("favoriteWorkspace", "Add a workspace to your favorites"),
    )
    .delete(
      "/:workspace/favorite",
      async ({ caller, params, status }) => {
        await setFavorite(params.workspace, caller, false);
        return status(204, undefined);
      },
      toRouteOptions("unfavoriteWorkspace", "Remove a workspace from your favorites"),
    );
};
