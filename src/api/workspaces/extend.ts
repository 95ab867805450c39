// Extends the deadline of a running workspace: by users who may change it, and by its own agent (facts/platform 2.7 and 10.1).
import { toRfc3339 } from "#base/clock.ts";
import { invalidField } from "#base/errors.ts";
import { workspacePath } from "#domain/workspaces/find.ts";
import { ExtendWorkspace } from "#schema/workspaces/schedule.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { ANY_TIME } from "../http/document/example-ids.ts";
import { operation } from "../http/operation.ts";
import { fails, Generic } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { loadActiveWorkspace } from "./active.ts";

export const extend = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .put(
      "/:workspace/extend",
      async ({ params, body, request }) => {
        const { id, by } = await loadActiveWorkspace(ctx, params.workspace, request);
        const deadline = Date.parse(body.deadline);
        if (Number.isNaN(deadline)) throw invalidField("deadline", "must be a date and time in RFC 3339");
        await ctx.workspaces.ask(id, "extend", { deadline, by });
        return { message: `Deadline updated to ${toRfc3339(deadline)}.` };
      },
      {
        anyone: true,
        params: workspacePath,
        body: ExtendWorkspace,
        response: { 200: Generic, ...fails(400, 401, 403, 404, 409, 410, 413, 503) },
        detail: operation({
          tags: ["Workspaces"],
          operationId: "extendWorkspace",
          summary: "Extend the deadline of a workspace",
          description:
            "Sets an earlier or later deadline, at least 30 minutes from now and within the template's limit. Returns 409 if the workspace is not running or has no deadline. The workspace's agent can also call this.",
          audit: target.writes(target.workspace),
          example: { deadline: ANY_TIME },
          scope: "workspace:update",
          placement: "workspace",
        }),
      },
    );
