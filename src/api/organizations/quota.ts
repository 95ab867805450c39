// The daily cost of a member's workspaces, and the allowance of their groups.
import { findQuota } from "#domain/groups/quota.ts";
import { loadOrganization } from "#domain/organizations/find.ts";
import { WorkspaceQuota } from "#schema/users/group.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { memberPath } from "./members.ts";

export const quota = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:organization/members/:user/workspace-quota",
      async ({ caller, params }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        return findQuota(ctx, id, params.user, caller);
      },
      {
        user: true,
        params: memberPath,
        response: { 200: WorkspaceQuota, ...fails(401, 404) },
        detail: operation({
          tags: ["Groups"],
          operationId: "getWorkspaceQuota",
          summary: "Get a member's workspace quota",
          description: "Returns credits per day, as declared by templates. Builds that would exceed the budget fail.",
          access: "owner",
          scope: "organization_member:read",
        }),
      },
    );
