// Lists the administrators that an organization's members can ask for help.
import { t } from "elysia";
import { listTemplateAdministrators } from "#db/users/members.ts";
import { loadOrganization, organizationPath } from "#domain/organizations/find.ts";
import { MinimalUser } from "#schema/users/user.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const administrators = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:organization/administrators",
      async ({ caller, params }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        return ctx.store.all(listTemplateAdministrators({ organization_id: id }));
      },
      {
        user: true,
        params: organizationPath,
        response: { 200: t.Array(MinimalUser), ...fails(401, 404) },
        detail: operation({
          tags: ["Organizations"],
          operationId: "listOrganizationAdministrators",
          summary: "List template administrators",
          description:
            "Returns at most ten of the organization's template administrators, so that members know who to ask.",
          access: "members",
          scope: "organization_member:read",
        }),
      },
    );
