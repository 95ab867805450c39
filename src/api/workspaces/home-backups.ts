// Home backups of a workspace: list, create, fetch, delete.
import { t } from "elysia";
import { findExistingWorkspace, findWorkspaceToReplaceFiles, workspacePath } from "#domain/workspaces/find.ts";
import {
  createHomeBackup,
  deleteHomeBackup,
  fetchHomeBackup,
  loadHomeBackup,
  readHomeBackups,
} from "#domain/workspaces/home-backups.ts";
import { HomeBackup, HomeBackups } from "#schema/workspaces/home-backup.ts";
import { Snapshot } from "#schema/workspaces/snapshot.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Home backups"];
const user = true;
const params = t.Object({
  ...workspacePath.properties,
  backup: t.String({ format: "uuid", description: "The ID of the home backup." }),
});

export const homeBackups = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:workspace/home-backups",
      async ({ caller, params }) => readHomeBackups(ctx, await findExistingWorkspace(ctx, params.workspace, caller)),
      {
        user,
        params: workspacePath,
        response: { 200: HomeBackups, ...fails(400, 401, 404, 410) },
        detail: operation({
          tags,
          operationId: "listHomeBackups",
          summary: "List home backups of a workspace",
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    )
    .post(
      "/:workspace/home-backups",
      async ({ caller, params, status }) =>
        status(
          201,
          await createHomeBackup(ctx, await findWorkspaceToReplaceFiles(ctx, params.workspace, caller), caller),
        ),
      {
        user,
        params: workspacePath,
        response: { 201: HomeBackup, ...fails(400, 401, 403, 404, 409, 410, 503) },
        detail: operation({
          tags,
          operationId: "createHomeBackup",
          summary: "Create a home backup",
          description:
            "Creates a snapshot of the workspace's files and stores it, encrypted, in the configured folder or bucket. Returns immediately; `status` shows when the backup is ready.",
          audit: target.creates(target.newSnapshot),
          access: "owner",
          scope: "workspace:update",
          placement: "workspace",
        }),
      },
    )
    .post(
      "/:workspace/home-backups/:backup/fetch",
      async ({ caller, params, status }) => {
        const workspace = await findWorkspaceToReplaceFiles(ctx, params.workspace, caller);
        const backup = await loadHomeBackup(ctx, workspace, params.backup);
        return status(201, await fetchHomeBackup(ctx, workspace, backup, caller));
      },
      {
        user,
        params,
        response: { 201: Snapshot, ...fails(400, 401, 403, 404, 409, 410, 503) },
        detail: operation({
          tags,
          operationId: "fetchHomeBackup",
          summary: "Fetch a home backup",
          description:
            "Creates a snapshot of the workspace from the backup, which can be restored like any other. Returns immediately; `status` shows when the snapshot is ready. To create another workspace from the backup, fork the workspace with `home_backup_id`.",
          audit: target.creates(target.newSnapshot),
          access: "owner",
          scope: "workspace:update",
          placement: "workspace",
        }),
      },
    )
    .delete(
      "/:workspace/home-backups/:backup",
      async ({ caller, params }) => {
        const workspace = await findWorkspaceToReplaceFiles(ctx, params.workspace, caller);
        await deleteHomeBackup(ctx, workspace, await loadHomeBackup(ctx, workspace, params.backup));
        return new Response(null, { status: 204 });
      },
      {
        params,
        user,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 410, 503) },
        detail: operation({
          tags,
          operationId: "deleteHomeBackup",
          summary: "Delete a home backup",
          description:
            "Data that no other backup of the workspace needs is deleted in the background. Returns 409 while the backup is being created or fetched.",
          audit: target.deletes(target.homeBackup),
          access: "owner",
          scope: ["workspace:update", "workspace:delete"],
          placement: "workspace",
        }),
      },
    );
