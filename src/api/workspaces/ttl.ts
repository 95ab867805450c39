// Autostop: how long a workspace runs after a start (facts/platform 2.7 and 3.4).
import { invalidField } from "#base/errors.ts";
import { findChangeableWorkspace, toActivityUser, workspacePath } from "#domain/workspaces/find.ts";
import { findTtlProblem, roundTtl, UpdateTtl } from "#schema/workspaces/schedule.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const ttl = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .put(
      "/:workspace/ttl",
      async ({ caller, params, body, status }) => {
        const workspace = await findChangeableWorkspace(ctx, params.workspace, caller);
        const problem = body.ttl_ms ? findTtlProblem(body.ttl_ms) : undefined;
        if (problem) throw invalidField("ttl_ms", problem);
        await ctx.workspaces.ask(workspace.id, "setTtl", { ttl_ms: roundTtl(body.ttl_ms), by: toActivityUser(caller) });
        return status(204, undefined);
      },
      {
        user: true,
        params: workspacePath,
        body: UpdateTtl,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 410, 413, 503) },
        detail: operation({
          tags: ["Workspaces"],
          operationId: "setWorkspaceTtl",
          summary: "Update a workspace's autostop",
          description:
            "Applies from the next start; the current deadline is unchanged, except that null or 0 removes it. Returns 400 if the template doesn't allow it.",
          example: { ttl_ms: 28_800_000 },
          audit: target.writes(target.workspace),
          access: "owner",
          scope: "workspace:update",
          placement: "workspace",
        }),
      },
    );
