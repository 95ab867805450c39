// Organizations, which own templates and workspaces.
import { t } from "elysia";
import { listOrganizations } from "#db/users/organizations.ts";
import { canSeeOrganization } from "#domain/access.ts";
import { changeOrganization, createOrganization, removeOrganization } from "#domain/organizations/change.ts";
import { loadOrganization, organizationPath, presentOrganization } from "#domain/organizations/find.ts";
import { CreateOrganizationRequest, Organization, UpdateOrganizationRequest } from "#schema/users/organization.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Generic } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { administrators } from "./administrators.ts";
import { groupsOfOrganization } from "./groups.ts";
import { members } from "./members.ts";
import { quota } from "./quota.ts";
import { sharing } from "./sharing.ts";

const tags = ["Organizations"];
const params = organizationPath;

export const organizations = (ctx: ApiContext) =>
  routes({ prefix: "/organizations" })
    .use(callers)
    .use(members(ctx))
    .use(groupsOfOrganization(ctx))
    .use(quota(ctx))
    .use(sharing(ctx))
    .use(administrators(ctx))
    .get(
      "",
      async ({ caller }) => {
        const rows = await ctx.store.all(listOrganizations());
        return rows.filter((row) => canSeeOrganization(caller, row.id)).map(presentOrganization);
      },
      {
        user: true,
        response: { 200: t.Array(Organization), ...fails(401) },
        detail: operation({
          tags,
          operationId: "listOrganizations",
          summary: "List organizations",
          description: "Returns the organizations that the caller can see, sorted by name.",
          access: "users",
          scope: "organization:read",
        }),
      },
    )
    .post(
      "",
      async ({ caller, body, status }) => status(201, presentOrganization(await createOrganization(ctx, caller, body))),
      {
        user: true,
        body: CreateOrganizationRequest,
        response: { 201: Organization, ...fails(400, 401, 403, 409, 415) },
        detail: operation({
          tags,
          operationId: "createOrganization",
          summary: "Create an organization",
          example: { name: "research", display_name: "Research" },
          access: "admins",
          scope: "organization:create",
        }),
      },
    )
    .get(
      "/:organization",
      async ({ caller, params }) => presentOrganization(await loadOrganization(ctx.store, params.organization, caller)),
      {
        user: true,
        params,
        response: { 200: Organization, ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "getOrganization",
          summary: "Get an organization",
          access: "members",
          scope: "organization:read",
        }),
      },
    )
    .patch(
      "/:organization",
      async ({ caller, params, body }) => {
        const row = await loadOrganization(ctx.store, params.organization, caller);
        return presentOrganization(await changeOrganization(ctx, row, caller, body));
      },
      {
        user: true,
        params,
        body: UpdateOrganizationRequest,
        response: { 200: Organization, ...fails(400, 401, 403, 404, 409, 415) },
        detail: operation({
          tags,
          operationId: "updateOrganization",
          summary: "Update an organization",
          description: "Omitted fields are unchanged.",
          audit: target.writes(target.organization),
          example: { display_name: "Research" },
          access: "organization_admins",
          scope: "organization:update",
        }),
      },
    )
    .delete(
      "/:organization",
      async ({ caller, params }) => {
        await removeOrganization(ctx, await loadOrganization(ctx.store, params.organization, caller), caller);
        return { message: "The organization has been deleted." };
      },
      {
        user: true,
        params,
        response: { 200: Generic, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "deleteOrganization",
          summary: "Delete an organization",
          description: "Returns 409 while the organization has templates or workspaces.",
          audit: target.deletes(target.organization),
          access: "organization_admins",
          scope: "organization:delete",
        }),
      },
    );
