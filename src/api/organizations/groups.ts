// The groups of an organization, and a group by name.
import { t } from "elysia";
import { createGroup } from "#domain/groups/change.ts";
import { findNamedGroup, listGroups, presentGroup } from "#domain/groups/find.ts";
import { loadOrganization, organizationPath } from "#domain/organizations/find.ts";
import { CreateGroup, Group } from "#schema/users/group.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Groups"];
const user = true;

export const groupsOfOrganization = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:organization/groups",
      async ({ caller, params }) => {
        const organization = await loadOrganization(ctx.store, params.organization, caller);
        const rows = await listGroups(ctx.store, organization);
        return Promise.all(rows.map((group) => presentGroup(ctx.store, { group, organization }, caller)));
      },
      {
        user,
        params: organizationPath,
        response: { 200: t.Array(Group), ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "listOrganizationGroups",
          summary: "List groups of an organization",
          description: "Returns the group of all members first, then the others, sorted by name.",
          access: "members",
          scope: "group:read",
        }),
      },
    )
    .post(
      "/:organization/groups",
      async ({ caller, params, body, status }) => {
        const organization = await loadOrganization(ctx.store, params.organization, caller);
        const created = await createGroup(ctx, organization, caller, body);
        return status(201, await presentGroup(ctx.store, created, caller));
      },
      {
        user,
        params: organizationPath,
        body: CreateGroup,
        response: { 201: Group, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "createGroup",
          summary: "Create a group",
          example: { name: "frontend", display_name: "Front end" },
          access: "organization_admins",
          scope: "group:create",
          changesAccess: "group:create",
        }),
      },
    )
    .get(
      "/:organization/groups/:groupName",
      async ({ caller, params }) => {
        const organization = await loadOrganization(ctx.store, params.organization, caller);
        return presentGroup(ctx.store, await findNamedGroup(ctx.store, organization, params.groupName, caller), caller);
      },
      {
        user,
        params: t.Object({
          organization: organizationPath.properties.organization,
          groupName: t.String({ description: "The name or ID of the group." }),
        }),
        response: { 200: Group, ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "getGroupByName",
          summary: "Get a group by name",
          access: "members",
          scope: "group:read",
        }),
      },
    );
