// Snapshots of a workspace's files: list, create, restore, delete.
import { t } from "elysia";
import { restoreBuild } from "#domain/builds/create.ts";
import {
  findChangeableWorkspace,
  findExistingWorkspace,
  findWorkspaceToReplaceFiles,
  workspacePath,
} from "#domain/workspaces/find.ts";
import { createSnapshot, findWorkspaceSnapshot, readSnapshots } from "#domain/workspaces/snapshots.ts";
import { Build } from "#schema/workspaces/build.ts";
import { CreateSnapshot, Snapshot, Snapshots } from "#schema/workspaces/snapshot.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Snapshots"];
const user = true;
const params = t.Object({
  ...workspacePath.properties,
  snapshot: t.String({ format: "uuid", description: "The ID of the snapshot." }),
});

export const snapshots = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:workspace/snapshots",
      async ({ caller, params }) => readSnapshots(ctx, await findExistingWorkspace(ctx, params.workspace, caller)),
      {
        user,
        params: workspacePath,
        response: { 200: Snapshots, ...fails(400, 401, 404, 410) },
        detail: operation({
          tags,
          operationId: "listSnapshots",
          summary: "List snapshots of a workspace",
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    )
    .post(
      "/:workspace/snapshots",
      async ({ caller, params, body, status }) =>
        status(
          201,
          await createSnapshot(ctx, await findChangeableWorkspace(ctx, params.workspace, caller), body, caller),
        ),
      {
        user,
        params: workspacePath,
        body: CreateSnapshot,
        response: { 201: Snapshot, ...fails(400, 401, 403, 404, 409, 410, 413, 503) },
        detail: operation({
          tags,
          operationId: "createSnapshot",
          summary: "Create a snapshot",
          description:
            "Copies the workspace's files at a single point in time. The workspace is paused during the copy. Returns immediately; `status` shows when the snapshot is ready.",
          example: { name: "Before the upgrade" },
          audit: target.creates(target.newSnapshot),
          access: "owner",
          scope: "workspace:update",
          placement: "workspace",
        }),
      },
    )
    .post(
      "/:workspace/snapshots/:snapshot/restore",
      async ({ caller, params, status }) => {
        const workspace = await findWorkspaceToReplaceFiles(ctx, params.workspace, caller);
        const snapshot = await findWorkspaceSnapshot(ctx, workspace, params.snapshot);
        return status(201, await restoreBuild(ctx, workspace.id, snapshot, caller));
      },
      {
        user,
        params,
        response: { 201: Build, ...fails(400, 401, 403, 404, 406, 409, 410, 503) },
        detail: operation({
          tags,
          operationId: "restoreSnapshot",
          summary: "Restore a snapshot",
          description:
            "Replaces the workspace's files with those of the snapshot. A running workspace is restarted. Returns the build.",
          audit: target.writes(target.snapshot),
          access: "owner",
          scope: ["workspace:update", "workspace:start", "workspace:stop"],
          placement: "workspace",
        }),
      },
    )
    .delete(
      "/:workspace/snapshots/:snapshot",
      async ({ caller, params }) => {
        const workspace = await findWorkspaceToReplaceFiles(ctx, params.workspace, caller);
        const { id } = await findWorkspaceSnapshot(ctx, workspace, params.snapshot);
        await ctx.workspaces.ask(workspace.id, "deleteSnapshot", { snapshot_id: id });
        return new Response(null, { status: 204 });
      },
      {
        user,
        params,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 410, 503) },
        detail: operation({
          tags,
          operationId: "deleteSnapshot",
          summary: "Delete a snapshot",
          description:
            "The files are deleted in the background. Returns 409 while the snapshot is being created or restored.",
          audit: target.deletes(target.snapshot),
          access: "owner",
          scope: ["workspace:update", "workspace:delete"],
          placement: "workspace",
        }),
      },
    );
