// Lists the members a caller can create a workspace for (facts/platform 3.4).
import { t } from "elysia";
import { forbidden } from "#base/errors.ts";
import { searchUsers } from "#db/users/search.ts";
import { canCreateWorkspacesForAll } from "#domain/access.ts";
import { loadOrganization } from "#domain/organizations/find.ts";
import { findUserInPath } from "#domain/users/find.ts";
import { MinimalUser } from "#schema/users/user.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { pageQuery, toPage } from "../http/paging.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { parseUserFilter } from "../users/collection.ts";

export const availableUsers = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/organizations/:organization/members/:user/workspaces/available-users",
      async ({ caller, params, query }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        await findUserInPath(ctx.store, params.user, caller);
        if (!canCreateWorkspacesForAll(caller, id)) throw forbidden("You may not create workspaces for others here.");
        const filter = { ...parseUserFilter(query.q ?? "", caller), visible: { user_id: "", organizations: [id] } };
        const users = await ctx.store.scan(searchUsers(filter, toPage(query)));
        return users.map(({ id, username, name, avatar_url }) => ({ id, username, name, avatar_url }));
      },
      {
        user: true,
        params: t.Object({
          organization: t.String({ description: "The organization's ID or name." }),
          user: t.String({ description: "The user's ID, username or `me`." }),
        }),
        query: t.Object({
          q: t.Optional(t.String({ maxLength: 2000, description: "A search query, as in the user list." })),
          limit: pageQuery.limit,
          offset: pageQuery.offset,
        }),
        response: { 200: t.Array(MinimalUser), ...fails(400, 401, 403, 404) },
        detail: operation({
          tags: ["Workspaces"],
          operationId: "listAvailableWorkspaceOwners",
          summary: "List possible workspace owners",
          description: "Returns users, sorted by username. Requires permission to create workspaces for all members.",
          access: "user_admins",
          scope: "workspace:create",
        }),
      },
    );
