// Wakes a workspace: starts it if it is stopped, because someone is connecting to it. A Slipway extension.
import { conflict, notFound } from "#base/errors.ts";
import { findBuildView } from "#db/workspaces/views.ts";
import { presentBuilds } from "#domain/builds/present.ts";
import { wakeWorkspace } from "#domain/builds/wake.ts";
import { findExistingWorkspace, workspacePath } from "#domain/workspaces/find.ts";
import { Build } from "#schema/workspaces/build.ts";
import { WakeWorkspace } from "#schema/workspaces/wake.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const wake = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:workspace/wake",
      async ({ caller, params, body }) => {
        const { id } = await findExistingWorkspace(ctx, params.workspace, caller);
        const reason = body.reason === undefined ? {} : { reason: body.reason };
        const { state, build_id } = await wakeWorkspace(ctx, id, { caller, ...reason });
        if (state === "dormant") throw conflict("The workspace is dormant. Activate it first (set dormant to false).");
        const view = await ctx.store.get(findBuildView({ id: build_id }));
        const [build] = view ? await presentBuilds(ctx, [view], caller.compat) : [];
        if (!build) throw notFound();
        return build;
      },
      {
        user: true,
        params: workspacePath,
        body: WakeWorkspace,
        response: { 200: Build, ...fails(400, 401, 403, 404, 406, 409, 410, 413, 503) },
        detail: operation({
          tags: ["Workspaces"],
          operationId: "wakeWorkspace",
          summary: "Start a workspace on connect",
          description:
            "Starts a stopped workspace if its template and your preferences allow it, and returns its latest build. Concurrent calls get the same build. A workspace that is running, starting or stopping, or whose last build failed, is unchanged. Returns 409 if the template or your preferences don't allow starting on connect, and 403 if you may not start the workspace. Specific to this server.",
          example: { reason: "ssh_connection" },
          audit: target.writes(target.restart),
          access: "owner",
          scope: "workspace:start",
          placement: "workspace",
        }),
      },
    );
