// Automatic updates of a workspace: the setting, and whether the next autostart can fill the new version's parameters (facts/platform 3.4).
import { t } from "elysia";
import { AppError, forbidden } from "#base/errors.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import { findBuild, listBuildParameters } from "#db/workspaces/builds.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import { canFollowTemplate, canUpdateWorkspace } from "#domain/access.ts";
import { findExistingWorkspace, workspacePath } from "#domain/workspaces/find.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { PutAutomaticUpdates } from "#schema/workspaces/workspace.ts";
import { resolveParameters } from "#src/provisioners/parameters.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Workspaces"];

export const autoupdates = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .put(
      "/:workspace/autoupdates",
      async ({ caller, params, body, status }) => {
        const workspace = await findExistingWorkspace(ctx, params.workspace, caller);
        if (!canUpdateWorkspace(caller, workspace)) throw forbidden("You may not change this workspace.");
        if (body.automatic_updates === "always" && !canFollowTemplate(caller, workspace))
          throw forbidden("Only people who can use the workspace can turn on automatic updates.");
        await ctx.workspaces.ask(workspace.id, "edit", { type: "follow", ...body });
        return status(204, undefined);
      },
      {
        user: true,
        params: workspacePath,
        body: PutAutomaticUpdates,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 410, 413, 503) },
        detail: operation({
          tags,
          operationId: "setWorkspaceAutomaticUpdates",
          summary: "Update a workspace's automatic updates",
          description: "With `always`, each start uses the template's active version.",
          example: { automatic_updates: "always" },
          audit: target.writes(target.workspace),
          access: "owner",
          outlivesGrant: true,
          scope: "workspace:update",
          placement: "workspace",
        }),
      },
    )
    .get(
      "/:workspace/resolve-autostart",
      async ({ caller, params }) => {
        const workspace = await findExistingWorkspace(ctx, params.workspace, caller);
        return { parameter_mismatch: await hasMismatch(ctx, workspace.id) };
      },
      {
        user: true,
        params: workspacePath,
        response: {
          200: t.Object({
            parameter_mismatch: t.Boolean({
              description: "Whether the next start would use a version with a parameter that has no value.",
            }),
          }),
          ...fails(400, 401, 404, 410),
        },
        detail: operation({
          tags,
          operationId: "resolveWorkspaceAutostart",
          summary: "Check whether a workspace can autostart",
          description:
            "Always returns false if the next start uses the current version, because its parameters already have values.",
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    );

/** Returns whether the next start uses another version with parameters that neither the last build's values nor defaults can fill. */
const hasMismatch = async ({ store }: ApiContext, id: string): Promise<boolean> => {
  const workspace = await store.get(findWorkspace({ id }));
  const template = workspace && (await store.get(findTemplateEvenDeleted({ id: workspace.template_id })));
  const lastBuild = workspace && (await store.get(findBuild({ id: workspace.latest_build_id })));
  if (!template || !lastBuild) return false;
  const usesActiveVersion = template.require_active_version || workspace.automatic_updates === "always";
  if (!usesActiveVersion || lastBuild.template_version_id === template.active_version_id) return false;
  const version = await store.get(findTemplateVersion({ id: template.active_version_id }));
  if (!version?.manifest) return false;
  const values = await store.all(listBuildParameters({ build_id: lastBuild.id }));
  const previous = Object.fromEntries(values.map(({ name, value }) => [name, value]));
  try {
    resolveParameters({ manifest: JSON.parse(version.manifest) as Manifest, given: [], previous });
    return false;
  } catch (error) {
    if (error instanceof AppError) return true;
    throw error;
  }
};
