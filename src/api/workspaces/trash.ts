// The trash: deleted workspaces whose files still exist, and restoring them.
import { invalidField } from "#base/errors.ts";
import { restoreDeleted } from "#domain/builds/create.ts";
import { findNameProblem } from "#domain/workspaces/fields.ts";
import { loadWorkspace, workspacePath } from "#domain/workspaces/find.ts";
import { readTrash } from "#domain/workspaces/trash.ts";
import { Build } from "#schema/workspaces/build.ts";
import { RestoreWorkspace, Trash } from "#schema/workspaces/trash.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Trash"];

export const trash = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get("/trash", ({ caller }) => readTrash(ctx, caller), {
      user: true,
      response: { 200: Trash, ...fails(401, 503) },
      detail: operation({
        tags,
        operationId: "listTrash",
        summary: "List deleted workspaces",
        access: "users",
        scope: "workspace:read",
        placement: "here",
      }),
    })
    .post(
      "/:workspace/restore",
      async ({ caller, params, body, status }) => {
        const { id } = await loadWorkspace(ctx, params.workspace, caller);
        const problem = body.name === undefined ? undefined : findNameProblem(body.name);
        if (problem !== undefined) throw invalidField("name", problem);
        return status(201, await restoreDeleted(ctx, id, body.name, caller));
      },
      {
        user: true,
        params: workspacePath,
        body: RestoreWorkspace,
        response: { 201: Build, ...fails(400, 401, 403, 404, 406, 409, 413, 503) },
        detail: operation({
          tags,
          operationId: "restoreWorkspace",
          summary: "Restore a deleted workspace",
          description:
            "Restores a workspace from the trash, stopped, with its files, snapshots, parameters and chats. Shares are not restored. Returns the build.",
          example: { name: "dev-again" },
          audit: target.writes(target.workspace),
          access: "owner",
          scope: ["workspace:update", "workspace:stop"],
          placement: "workspace",
        }),
      },
    );
