// Forks of a workspace: new workspaces that start with its files.
import { t } from "elysia";
import { findChangeableWorkspace, findExistingWorkspace, workspacePath } from "#domain/workspaces/find.ts";
import { createFork, readFork, readForks } from "#domain/workspaces/forks.ts";
import { CreateFork, Fork, Forks } from "#schema/workspaces/fork.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Snapshots"];
const user = true;
const params = t.Object({
  ...workspacePath.properties,
  fork: t.String({ format: "uuid", description: "The ID of the fork." }),
});

export const forks = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:workspace/forks",
      async ({ caller, params }) => readForks(ctx, await findExistingWorkspace(ctx, params.workspace, caller), caller),
      {
        user,
        params: workspacePath,
        response: { 200: Forks, ...fails(400, 401, 404, 410) },
        detail: operation({
          tags,
          operationId: "listForks",
          summary: "List your forks of a workspace",
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    )
    .post(
      "/:workspace/forks",
      async ({ caller, params, body, status }) =>
        status(201, await createFork(ctx, await findChangeableWorkspace(ctx, params.workspace, caller), body, caller)),
      {
        user,
        params: workspacePath,
        body: CreateFork,
        response: { 201: Fork, ...fails(400, 401, 403, 404, 406, 409, 410, 413, 503) },
        detail: operation({
          tags,
          operationId: "createFork",
          summary: "Fork a workspace",
          description:
            "Creates workspaces that you own, with the current files, template and parameters of this one, and copies of your chats in it. The workspace is paused while its files are copied. Returns immediately; `status` shows when the fork is ready.",
          example: { count: 3 },
          audit: target.creates(target.newSnapshot),
          access: "owner",
          scope: ["workspace:update", "workspace:create", "template:use"],
          placement: "workspace",
        }),
      },
    )
    .get(
      "/:workspace/forks/:fork",
      async ({ caller, params }) =>
        readFork(ctx, await findExistingWorkspace(ctx, params.workspace, caller), params.fork, caller),
      {
        user,
        params,
        response: { 200: Fork, ...fails(400, 401, 404, 410) },
        detail: operation({
          tags,
          operationId: "getFork",
          summary: "Get a fork of a workspace",
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    );
