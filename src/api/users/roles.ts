// Site roles: list and assign. Only an owner can assign them, and never to themselves (rule ID-11).
import { t } from "elysia";
import { canGiveSiteRoles } from "#domain/access.ts";
import { setSiteRoles } from "#domain/users/change.ts";
import { findUserInPath, userPath } from "#domain/users/find.ts";
import { presentKnownUser } from "#domain/users/present.ts";
import { AssignableRole, listAssignable } from "#domain/users/site-roles.ts";
import { SITE_ROLES, UpdateRolesRequest, User } from "#schema/users/user.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Users"];

export const userRoles = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get("/roles", ({ caller }) => listAssignable(SITE_ROLES, canGiveSiteRoles(caller)), {
      user: true,
      response: { 200: t.Array(AssignableRole), ...fails(401) },
      detail: operation({
        tags,
        operationId: "listSiteRoles",
        summary: "List site roles",
        access: "users",
        scope: "user:read",
      }),
    })
    .get(
      "/:user/roles",
      async ({ caller, params }) => {
        const user = await findUserInPath(ctx.store, params.user, caller);
        return {
          roles: [...user.roles],
          organization_roles: Object.fromEntries(
            Object.entries(user.organizations).map(([organization, roles]) => [organization, [...roles]]),
          ),
        };
      },
      {
        user: true,
        params: userPath,
        response: {
          200: t.Object({
            roles: t.Array(t.String(), { description: "The site roles; `member` is implied." }),
            organization_roles: t.Record(t.String(), t.Array(t.String()), {
              description: "The organization roles, by organization ID.",
            }),
          }),
          ...fails(401, 404),
        },
        detail: operation({
          tags,
          operationId: "getUserRoles",
          summary: "Get a user's roles",
          access: "owner",
          scope: "user:read",
        }),
      },
    )
    .put(
      "/:user/roles",
      async ({ caller, params, body }) => {
        const user = await findUserInPath(ctx.store, params.user, caller);
        return presentKnownUser(await setSiteRoles(ctx, user, caller, body.roles));
      },
      {
        user: true,
        params: userPath,
        body: UpdateRolesRequest,
        response: { 200: User, ...fails(400, 401, 403, 404, 409, 415) },
        detail: operation({
          tags,
          operationId: "setUserRoles",
          summary: "Update a user's site roles",
          description: "Replaces all of the user's site roles.",
          audit: target.writes(target.user),
          example: { roles: ["auditor"] },
          access: "user_admins",
          scope: "all",
        }),
      },
    );
