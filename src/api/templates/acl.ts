// Who can use a template, and who it could be shared with.
import { changeAccess, checkCanManage, presentAccess, presentAvailable } from "#domain/templates/access-list.ts";
import { loadTemplate, templatePath } from "#domain/templates/find.ts";
import { Generic } from "#schema/generic.ts";
import { PatchTemplateAcl, TemplateAcl, TemplateAclAvailable } from "#schema/templates/template-acl.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { ANY_ID } from "../http/document/example-ids.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Templates"];
const user = true;
const params = templatePath;

export const templateAcl = (ctx: ApiContext) =>
  routes({ prefix: "/templates" })
    .use(callers)
    .get(
      "/:template/acl",
      async ({ caller, params }) => {
        const { template } = await loadTemplate(ctx, params.template, caller);
        checkCanManage(template, caller);
        return presentAccess(ctx, template, caller);
      },
      {
        user,
        params,
        response: { 200: TemplateAcl, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getTemplateAcl",
          summary: "Get a template's access list",
          access: "organization_admins",
          scope: "template:read",
        }),
      },
    )
    .get(
      "/:template/acl/available",
      async ({ caller, params }) => {
        const { template } = await loadTemplate(ctx, params.template, caller);
        checkCanManage(template, caller);
        return presentAvailable(ctx, template, caller);
      },
      {
        user,
        params,
        response: { 200: TemplateAclAvailable, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listTemplateAclAvailable",
          summary: "List users and groups to share a template with",
          access: "organization_admins",
          scope: "template:read",
        }),
      },
    )
    .patch(
      "/:template/acl",
      async ({ caller, params, body }) => {
        const { template } = await loadTemplate(ctx, params.template, caller);
        checkCanManage(template, caller);
        const reloadTemplate = async () => (await loadTemplate(ctx, template.id, caller)).template;
        await changeAccess(ctx, template, caller, body, reloadTemplate);
        return { message: "The list of who may use the template has been changed." };
      },
      {
        user,
        params,
        body: PatchTemplateAcl,
        response: { 200: Generic, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "updateTemplateAcl",
          summary: "Update a template's access list",
          description:
            "By default, all members of the template's organization can use it; to restrict it, remove the role of the group with the organization's ID. The roles are `use` (create workspaces) and `admin` (also manage the template). An empty string removes the role. Existing workspaces are unchanged.",
          example: { group_perms: { [ANY_ID]: "use" } },
          audit: target.writes(target.template),
          access: "organization_admins",
          scope: "template:update",
          changesAccess: "never",
        }),
      },
    );
