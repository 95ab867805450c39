// Sets the autostart schedule of a workspace (facts/platform 2.7 and 3.4).
import { canUseWorkspace } from "#domain/access.ts";
import { checkOwnerBelongs } from "#domain/builds/new-build.ts";
import { findChangeableWorkspace, loadStoppableWorkspace, workspacePath } from "#domain/workspaces/find.ts";
import { UpdateAutostart } from "#schema/workspaces/schedule.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const autostart = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .put(
      "/:workspace/autostart",
      async ({ caller, params, body, status }) => {
        const schedule = body.schedule?.trim() || null;
        const findWorkspaceFor = schedule === null ? loadStoppableWorkspace : findChangeableWorkspace;
        const workspace = await findWorkspaceFor(ctx, params.workspace, caller);
        if (schedule !== null) await checkOwnerBelongs(ctx.store, workspace);
        await ctx.workspaces.ask(workspace.id, "setAutostart", {
          schedule,
          no_user_data: !canUseWorkspace(caller, workspace),
        });
        return status(204, undefined);
      },
      {
        user: true,
        params: workspacePath,
        body: UpdateAutostart,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 410, 413, 503) },
        detail: operation({
          tags: ["Workspaces"],
          operationId: "setWorkspaceAutostart",
          summary: "Update a workspace's autostart schedule",
          description:
            "Sets a time on days of the week in a time zone, which follows daylight saving time. Returns 400 if the template doesn't allow autostart.",
          example: { schedule: "CRON_TZ=Europe/Berlin 30 9 * * 1-5" },
          audit: target.writes(target.workspace),
          access: "owner",
          outlivesGrant: true,
          scope: "workspace:update",
          placement: "workspace",
        }),
      },
    );
