// Marks a workspace as dormant and activates it again (facts/platform 2.6). Returns the workspace even when nothing changes (10.1).
import { notFound } from "#base/errors.ts";
import {
  findChangeableWorkspace,
  loadStoppableWorkspace,
  toActivityUser,
  workspacePath,
} from "#domain/workspaces/find.ts";
import { readWorkspace } from "#domain/workspaces/present.ts";
import { UpdateDormancy } from "#schema/workspaces/schedule.ts";
import { Workspace } from "#schema/workspaces/workspace.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const dormant = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .put(
      "/:workspace/dormant",
      async ({ caller, params, body }) => {
        const findWorkspaceFor = body.dormant ? loadStoppableWorkspace : findChangeableWorkspace;
        const row = await findWorkspaceFor(ctx, params.workspace, caller);
        const input = { dormant: body.dormant ?? false, by: toActivityUser(caller), initiator_id: caller.user_id };
        await ctx.workspaces.ask(row.id, "setDormant", input);
        const workspace = await readWorkspace(ctx, row.id, caller);
        if (!workspace) throw notFound();
        return workspace;
      },
      {
        user: true,
        params: workspacePath,
        body: UpdateDormancy,
        response: { 200: Workspace, ...fails(400, 401, 403, 404, 409, 410, 413, 503) },
        detail: operation({
          tags: ["Workspaces"],
          operationId: "setWorkspaceDormancy",
          summary: "Update a workspace's dormancy",
          description:
            "A dormant workspace is stopped, ignores its schedule, accepts no connections, and is deleted at `deleting_at` if its template says so. Starting a workspace also ends its dormancy.",
          example: { dormant: true },
          audit: target.writes(target.workspace),
          access: "owner",
          scope: "workspace:update",
          placement: "workspace",
        }),
      },
    );
