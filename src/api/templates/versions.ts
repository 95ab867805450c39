// The versions of one template: the list, one by name, and which is active.
import { t } from "elysia";
import { notFound, toErrorKind } from "#base/errors.ts";
import { findVersionByName, listUnusedVersions, listVersionIds, listVersionsById } from "#db/templates/versions.ts";
import { presentVersion } from "#domain/template-versions/present.ts";
import { requirePromotable } from "#domain/template-versions/promote.ts";
import { loadManagedTemplate, loadTemplate, templatePath } from "#domain/templates/find.ts";
import { Generic } from "#schema/generic.ts";
import { TemplateVersion } from "#schema/templates/template-version.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { answerList } from "../http/answers/large-list.ts";
import { callers } from "../http/caller.ts";
import { ANY_ID } from "../http/document/example-ids.ts";
import { operation } from "../http/operation.ts";
import { pageQuery, toPage } from "../http/paging.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Templates"];

export const templateVersionRoutes = (ctx: ApiContext) =>
  routes({ prefix: "/templates/:template/versions" })
    .use(callers)
    .get(
      "",
      async ({ caller, params, query, request }) => {
        const { template } = await loadTemplate(ctx, params.template, caller);
        const { store } = ctx;
        const idRows = await store.scan(
          listVersionIds({
            template_id: template.id,
            archived: query.include_archived ? 1 : 0,
            after: query.after_id?.toLowerCase() ?? "",
            ...toPage(query),
          }),
        );
        const ids = idRows.map(({ id }) => id);
        // Small pages, because each version may have a README of a megabyte.
        const present = async (pageIds: readonly string[]): Promise<Map<string, string>> => {
          const rows = await store.scan(listVersionsById({ ids: JSON.stringify(pageIds) }));
          return new Map(rows.map((row) => [row.version.id, JSON.stringify(presentVersion(row, ctx))]));
        };
        const list = { head: "[", ids, tail: "]", present };
        return answerList(ctx, request, caller.user_id, list);
      },
      {
        user: true,
        params: templatePath,
        query: t.Object({
          ...pageQuery,
          include_archived: t.Optional(t.BooleanString({ description: "Also return archived versions." })),
        }),
        response: { 200: t.Array(TemplateVersion), ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "listTemplateVersions",
          summary: "List versions of a template",
          description: "Returns versions, oldest first.",
          access: "members",
          scope: "template:read",
        }),
      },
    )
    .post(
      "/archive",
      async ({ caller, params, body }) => {
        const { template } = await loadManagedTemplate(ctx, params.template, caller);
        const unused = await ctx.store.scan(listUnusedVersions({ template_id: template.id, all: body.all ? 1 : 0 }));
        const archived_ids: string[] = [];
        for (const { id } of unused) {
          // A version that was promoted in the meantime is not archived.
          const isArchived = await ctx.versions.ask(id, "archive", { archived: true }).then(
            () => true,
            (error: unknown) => {
              if (toErrorKind(error) === "invalid") return false;
              throw error;
            },
          );
          if (isArchived) archived_ids.push(id);
        }
        return { template_id: template.id, archived_ids };
      },
      {
        user: true,
        params: templatePath,
        body: t.Object({
          all: t.Optional(t.Boolean({ description: "Archive all unused versions, not only failed imports." })),
        }),
        response: {
          200: t.Object({
            template_id: t.String({ format: "uuid" }),
            archived_ids: t.Array(t.String({ format: "uuid" }), { description: "The IDs of the archived versions." }),
          }),
          ...fails(400, 401, 403, 404, 413, 503),
        },
        detail: operation({
          tags,
          operationId: "archiveUnusedTemplateVersions",
          summary: "Archive unused versions of a template",
          description: "The active version and versions used by the latest build of a workspace are never archived.",
          audit: target.writes(target.template),
          example: { all: false },
          access: "organization_admins",
          scope: "template:update",
        }),
      },
    )
    .get(
      "/:name",
      async ({ caller, params }) => {
        const { template } = await loadTemplate(ctx, params.template, caller);
        const version = await ctx.store.get(findVersionByName({ template_id: template.id, name: params.name }));
        if (!version) throw notFound();
        return presentVersion(version, ctx);
      },
      {
        user: true,
        params: t.Object({ ...templatePath.properties, name: t.String({ description: "The name of the version." }) }),
        response: { 200: TemplateVersion, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "getTemplateVersionByName",
          summary: "Get a version of a template by name",
          access: "members",
          scope: "template:read",
        }),
      },
    )
    .patch(
      "",
      async ({ caller, params, body }) => {
        const { template } = await loadManagedTemplate(ctx, params.template, caller);
        await requirePromotable(ctx, caller, body.id.toLowerCase());
        await ctx.versions.ask(body.id.toLowerCase(), "activate", { template_id: template.id });
        return { message: "The version is active: new workspaces are made from it." };
      },
      {
        user: true,
        params: templatePath,
        body: t.Object({ id: t.String({ format: "uuid", description: "The ID of a version of this template." }) }),
        response: { 200: Generic, ...fails(400, 401, 403, 404, 412) },
        detail: operation({
          tags,
          operationId: "activateTemplateVersion",
          summary: "Activate a template version",
          description:
            "New workspaces use the active version. Its import must have succeeded, and it must not be archived.",
          audit: target.writes(target.template),
          example: { id: ANY_ID },
          access: "organization_admins",
          outlivesGrant: true,
          scope: "template:update",
        }),
      },
    );
