// The organizations a user is a member of.
import { t } from "elysia";
import { notFound } from "#base/errors.ts";
import { listOrganizations } from "#db/users/organizations.ts";
import { canSeeOrganization } from "#domain/access.ts";
import { loadOrganization, presentOrganization } from "#domain/organizations/find.ts";
import { findUserInPath, userPath } from "#domain/users/find.ts";
import { Organization } from "#schema/users/organization.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Users"];

export const userOrganizations = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:user/organizations",
      async ({ caller, params }) => {
        const user = await findUserInPath(ctx.store, params.user, caller);
        const rows = await ctx.store.all(listOrganizations());
        return rows
          .filter((row) => row.id in user.organizations && canSeeOrganization(caller, row.id))
          .map(presentOrganization);
      },
      {
        user: true,
        params: userPath,
        response: { 200: t.Array(Organization), ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "listUserOrganizations",
          summary: "List a user's organizations",
          access: "owner",
          scope: "organization:read",
        }),
      },
    )
    .get(
      "/:user/organizations/:organization",
      async ({ caller, params }) => {
        const user = await findUserInPath(ctx.store, params.user, caller);
        const organization = await loadOrganization(ctx.store, params.organization, caller);
        if (!(organization.id in user.organizations)) throw notFound();
        return presentOrganization(organization);
      },
      {
        user: true,
        params: t.Object({
          user: userPath.properties.user,
          organization: t.String({ description: "The organization's ID or name, or the word `default`." }),
        }),
        response: { 200: Organization, ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "getUserOrganization",
          summary: "Get one of a user's organizations",
          access: "owner",
          scope: "organization:read",
        }),
      },
    );
