// Renames a workspace. Disabled unless the setting `allow_workspace_renames` is on, because tools and people remember names (facts/platform
// 3.4).
import { AppError, forbidden, invalidField } from "#base/errors.ts";
import { canUpdateWorkspace } from "#domain/access.ts";
import { findNameProblem } from "#domain/workspaces/fields.ts";
import { loadWorkspace, workspacePath } from "#domain/workspaces/find.ts";
import { RenameWorkspace } from "#schema/workspaces/workspace.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const rename = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .patch(
      "/:workspace",
      async ({ caller, params, body, status }) => {
        const workspace = await loadWorkspace(ctx, params.workspace, caller);
        if (!canUpdateWorkspace(caller, workspace)) throw forbidden("You may not change this workspace.");
        if (workspace.deleted) throw new AppError("method_not_allowed", "A deleted workspace cannot be changed.");
        const { name = workspace.name } = body;
        const problem = findNameProblem(name);
        if (problem !== undefined) throw invalidField("name", problem);
        if (name !== workspace.name && !ctx.config.allow_workspace_renames) {
          throw new AppError("method_not_allowed", "Workspaces cannot be renamed on this server.", {
            detail: "The setting allow_workspace_renames is off.",
          });
        }
        await ctx.workspaces.ask(workspace.id, "edit", { type: "rename", name });
        return status(204, undefined);
      },
      {
        user: true,
        params: workspacePath,
        body: RenameWorkspace,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 405, 409, 413, 503) },
        detail: operation({
          tags: ["Workspaces"],
          operationId: "renameWorkspace",
          summary: "Rename a workspace",
          description: "Returns 405 if the setting `allow_workspace_renames` is off.",
          example: { name: "second" },
          audit: target.writes(target.workspace),
          access: "owner",
          scope: "workspace:update",
          placement: "workspace",
        }),
      },
    );
