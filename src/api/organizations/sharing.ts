// Enables and disables sharing of an organization's workspaces. Disabling it revokes existing shares (rule SH-12).
import { t } from "elysia";
import { findSharingDisabled } from "#db/workspaces/sharing.ts";
import { setSharingDisabled } from "#domain/organizations/change.ts";
import { loadOrganization, organizationPath } from "#domain/organizations/find.ts";
import { named } from "#schema/shape-names.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Organizations"];
const Sharing = named(
  "WorkspaceSharing",
  t.Object({
    sharing_disabled: t.Boolean({
      description: "Whether sharing of workspaces and chats is disabled in the organization.",
    }),
  }),
);

export const sharing = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:organization/settings/workspace-sharing",
      async ({ caller, params }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        return { sharing_disabled: (await ctx.store.get(findSharingDisabled({ organization_id: id }))) !== undefined };
      },
      {
        user: true,
        params: organizationPath,
        response: { 200: Sharing, ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "getWorkspaceSharing",
          summary: "Get the sharing settings",
          access: "members",
          scope: "organization:read",
        }),
      },
    )
    .patch(
      "/:organization/settings/workspace-sharing",
      async ({ caller, params, body }) => {
        const { sharing_disabled } = body;
        const organization = await loadOrganization(ctx.store, params.organization, caller);
        await setSharingDisabled(ctx, organization, caller, sharing_disabled);
        return { sharing_disabled };
      },
      {
        user: true,
        params: organizationPath,
        body: Sharing,
        response: { 200: Sharing, ...fails(400, 401, 403, 404, 413, 503) },
        detail: operation({
          tags,
          operationId: "updateWorkspaceSharing",
          summary: "Update the sharing settings",
          description: "Disabling sharing also revokes existing shares of the organization's workspaces and chats.",
          audit: target.writes(target.organization),
          example: { sharing_disabled: false },
          access: "organization_admins",
          scope: "organization:update",
          changesAccess: "never",
        }),
      },
    );
