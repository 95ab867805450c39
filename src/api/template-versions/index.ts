// Template versions: create, read, update, cancel and archive, and their template.yaml.

import { t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { openVariables } from "#db/templates/variables.ts";
import { canManageTemplates } from "#domain/access.ts";
import { listVersionExternalAuth } from "#domain/external-auth/version.ts";
import { loadOrganization, organizationPath } from "#domain/organizations/find.ts";
import { createVersion } from "#domain/template-versions/create.ts";
import { loadManagedVersion, loadManifest, loadVisibleVersion, versionPath } from "#domain/template-versions/find.ts";
import { presentVersion } from "#domain/template-versions/present.ts";
import { Generic } from "#schema/generic.ts";
import {
  CreateTemplateVersion,
  PatchTemplateVersion,
  PlannedResource,
  Preset,
  TemplateParameter,
  TemplateVariable,
  TemplateVersion,
} from "#schema/templates/template-version.ts";
import { VersionExternalAuth } from "#schema/users/external-auth.ts";
import {
  presentParameters,
  presentPlannedResources,
  presentPresets,
  presentVariables,
} from "#src/provisioners/planned.ts";
import { parseLogRequest } from "../agents/log-query.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { ANY_ID } from "../http/document/example-ids.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { jobLogRoute, jobLogs } from "../jobs/logs.ts";
import { dryRuns } from "./dry-run.ts";
import { dynamicParameters } from "./dynamic-parameters.ts";

const tags = ["Templates"];
const readErrors = fails(400, 401, 404, 412);

export const templateVersions = (ctx: ApiContext) =>
  routes()
    .use(organizationVersions(ctx))
    .use(versionById(ctx))
    .use(versionContents(ctx))
    .use(dryRuns(ctx))
    .use(dynamicParameters(ctx));

const organizationVersions = (ctx: ApiContext) =>
  routes({ prefix: "/organizations" })
    .use(callers)
    .post(
      "/:organization/templateversions",
      async ({ caller, params, body, status }) => {
        const organization = await loadOrganization(ctx.store, params.organization, caller);
        const id = await createVersion(ctx, caller, organization, body);
        return status(201, presentVersion(await loadVisibleVersion(ctx, id, caller), ctx));
      },
      {
        user: true,
        params: organizationPath,
        body: CreateTemplateVersion,
        response: { 201: TemplateVersion, ...fails(400, 401, 403, 404, 409, 413) },
        detail: operation({
          tags,
          operationId: "createTemplateVersion",
          summary: "Create a template version",
          description:
            "Starts importing an upload. The logs of the version show its progress. A template needs a version that was imported successfully.",
          example: { storage_method: "file", file_id: ANY_ID, message: "First version" },
          access: "organization_admins",
          scope: "template:update",
        }),
      },
    );

const versionById = (ctx: ApiContext) =>
  routes({ prefix: "/templateversions/:templateversion" })
    .use(callers)
    .get(
      "",
      async ({ caller, params }) => presentVersion(await loadVisibleVersion(ctx, params.templateversion, caller), ctx),
      {
        user: true,
        params: versionPath,
        response: { 200: TemplateVersion, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "getTemplateVersion",
          summary: "Get a template version",
          access: "members",
          scope: "template:read",
          placement: "template_version",
        }),
      },
    )
    .patch(
      "",
      async ({ caller, params, body }) => {
        const { version } = await loadManagedVersion(ctx, params.templateversion, caller);
        await ctx.versions.ask(version.id, "edit", body);
        return presentVersion(await loadVisibleVersion(ctx, version.id, caller), ctx);
      },
      {
        user: true,
        params: versionPath,
        body: PatchTemplateVersion,
        response: { 200: TemplateVersion, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "updateTemplateVersion",
          summary: "Update a template version",
          example: { message: "First version" },
          audit: target.writes(target.templateVersion),
          access: "organization_admins",
          scope: "template:update",
          placement: "template_version",
        }),
      },
    )
    .patch(
      "/cancel",
      async ({ caller, params }) => {
        const { version } = await loadManagedVersion(ctx, params.templateversion, caller);
        await ctx.versions.ask(version.id, "cancel", {});
        return { message: "The job has been marked as cancelled." };
      },
      {
        user: true,
        params: versionPath,
        response: { 200: Generic, ...fails(400, 401, 403, 404, 412) },
        detail: operation({
          tags,
          operationId: "cancelTemplateVersion",
          summary: "Cancel the import of a template version",
          audit: target.writes(target.templateVersion),
          access: "organization_admins",
          scope: "template:update",
          placement: "template_version",
        }),
      },
    )
    .post("/archive", ({ caller, params }) => archive(ctx, caller, params.templateversion, true), {
      user: true,
      params: versionPath,
      response: { 200: Generic, ...fails(400, 401, 403, 404) },
      detail: operation({
        tags,
        operationId: "archiveTemplateVersion",
        summary: "Archive a template version",
        description: "New builds can't use an archived version. The active version can't be archived.",
        audit: target.writes(target.templateVersion),
        access: "organization_admins",
        scope: "template:update",
        placement: "template_version",
      }),
    })
    .post("/unarchive", ({ caller, params }) => archive(ctx, caller, params.templateversion, false), {
      user: true,
      params: versionPath,
      response: { 200: Generic, ...fails(400, 401, 403, 404) },
      detail: operation({
        tags,
        operationId: "unarchiveTemplateVersion",
        summary: "Unarchive a template version",
        audit: target.writes(target.templateVersion),
        access: "organization_admins",
        scope: "template:update",
        placement: "template_version",
      }),
    });

const archive = async (
  ctx: ApiContext,
  caller: Parameters<typeof loadManagedVersion>[2],
  id: string,
  archived: boolean,
): Promise<Generic> => {
  const { version } = await loadManagedVersion(ctx, id, caller);
  await ctx.versions.ask(version.id, "archive", { archived });
  return { message: archived ? "The template version is archived." : "The template version is not archived." };
};

const versionContents = (ctx: ApiContext) =>
  routes({ prefix: "/templateversions/:templateversion" })
    .use(callers)
    .get(
      "/rich-parameters",
      async ({ caller, params }) =>
        presentParameters(await loadManifest(ctx, await loadVisibleVersion(ctx, params.templateversion, caller))),
      {
        user: true,
        params: versionPath,
        response: { 200: t.Array(TemplateParameter), ...readErrors },
        detail: operation({
          tags,
          operationId: "listTemplateVersionParameters",
          summary: "List parameters of a template version",
          description: "Returns the parameters of new workspaces.",
          access: "members",
          scope: "template:read",
          placement: "template_version",
        }),
      },
    )
    .get(
      "/variables",
      async ({ caller, params }) => {
        const found = await loadManagedVersion(ctx, params.templateversion, caller);
        return presentVariables(await loadManifest(ctx, found), openVariables(ctx.encryption, found.version));
      },
      {
        user: true,
        params: versionPath,
        response: { 200: t.Array(TemplateVariable), ...readErrors, ...fails(403) },
        detail: operation({
          tags,
          operationId: "listTemplateVersionVariables",
          summary: "List variables of a template version",
          description:
            "Also works after an import that failed because of missing values. Sensitive values are never returned.",
          access: "organization_admins",
          scope: "template:read",
          placement: "template_version",
        }),
      },
    )
    .get(
      "/presets",
      async ({ caller, params }) => {
        const found = await loadVisibleVersion(ctx, params.templateversion, caller);
        const presets = presentPresets(await loadManifest(ctx, found), found.version.id);
        if (!canManageTemplates(caller, found.version.organization_id)) return presets;
        const problems = ctx.prebuilds.problems();
        return presets.map((preset) => {
          const problem = problems.find(({ preset_id }) => preset_id === preset.id);
          return problem ? { ...preset, prebuild_problem: problem.reason } : preset;
        });
      },
      {
        user: true,
        params: versionPath,
        response: { 200: t.Array(Preset), ...readErrors },
        detail: operation({
          tags,
          operationId: "listTemplateVersionPresets",
          summary: "List presets of a template version",
          access: "members",
          scope: "template:read",
          placement: "first",
        }),
      },
    )
    .get(
      "/resources",
      async ({ caller, params }) => {
        const found = await loadVisibleVersion(ctx, params.templateversion, caller);
        const { id, job_id, created_at } = found.version;
        return presentPlannedResources(await loadManifest(ctx, found), {
          id,
          job_id,
          created_at: toRfc3339(created_at),
        });
      },
      {
        user: true,
        params: versionPath,
        response: { 200: t.Array(PlannedResource), ...readErrors },
        detail: operation({
          tags,
          operationId: "listTemplateVersionResources",
          summary: "List planned resources of a template version",
          description: "Returns the resources that a start would create.",
          access: "members",
          scope: "template:read",
          placement: "template_version",
        }),
      },
    )
    .get(
      "/external-auth",
      async ({ caller, params }) => {
        const manifest = await loadManifest(ctx, await loadVisibleVersion(ctx, params.templateversion, caller));
        return listVersionExternalAuth(ctx, caller, manifest);
      },
      {
        user: true,
        params: versionPath,
        response: { 200: t.Array(VersionExternalAuth), ...readErrors },
        detail: operation({
          tags,
          operationId: "listTemplateVersionExternalAccounts",
          summary: "List external accounts of a template version",
          description: "Returns the accounts in the version's `external_auth`, and whether the caller has linked them.",
          access: "members",
          scope: "template:read",
          placement: "template_version",
        }),
      },
    )
    .get(
      "/logs",
      async ({ caller, params, query, request }) => {
        const requested = parseLogRequest(query);
        const { job } = await loadVisibleVersion(ctx, params.templateversion, caller);
        return jobLogs(ctx, request, job, requested, caller);
      },
      {
        params: versionPath,
        ...jobLogRoute({
          tags,
          operationId: "listTemplateVersionLogs",
          summary: "List log lines of a template version import",
          access: "members",
          scope: "template:read",
          placement: "template_version",
        }),
      },
    );
