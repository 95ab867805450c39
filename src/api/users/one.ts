// A user: show, rename, suspend, activate, delete. Open connections of a suspended or deleted user end immediately (rule ID-12).

import { t } from "elysia";
import { changeProfile, findManagedUser, removeUser, setSuspended } from "#domain/users/change.ts";
import { findUserInPath, userPath as params } from "#domain/users/find.ts";
import { presentKnownUser } from "#domain/users/present.ts";
import { UpdateProfileRequest, User } from "#schema/users/user.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Generic } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Users"];
const statusPath = t.Object({
  user: params.properties.user,
  status: t.Union([t.Literal("suspend"), t.Literal("activate")], { description: "`suspend` or `activate`." }),
});

export const userById = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:user",
      async ({ caller, params }) => presentKnownUser(await findUserInPath(ctx.store, params.user, caller)),
      {
        enrolling: true,
        params,
        response: { 200: User, ...fails(401, 404) },
        // Programs call this first to find out whose key they have.
        detail: operation({
          tags,
          operationId: "getUser",
          summary: "Get a user",
          access: "owner",
          scope: "user:read",
          scopeForSelf: "any",
        }),
      },
    )
    .delete(
      "/:user",
      async ({ caller, params }) => {
        await removeUser(ctx, await findManagedUser(ctx, params.user, caller), caller);
        return { message: "The user has been deleted." };
      },
      {
        user: true,
        params,
        response: { 200: Generic, ...fails(401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "deleteUser",
          summary: "Delete a user",
          description: "Returns 409 while the user owns workspaces.",
          audit: target.deletes(target.user),
          access: "user_admins",
          scope: "user:delete",
          changesAccess: "never",
        }),
      },
    )
    .put(
      "/:user/profile",
      async ({ caller, params, body }) => {
        const user = await findUserInPath(ctx.store, params.user, caller);
        return presentKnownUser(await changeProfile(ctx, user, caller, body));
      },
      {
        user: true,
        params,
        body: UpdateProfileRequest,
        response: { 200: User, ...fails(400, 401, 403, 404, 409, 415) },
        detail: operation({
          tags,
          operationId: "updateUserProfile",
          summary: "Update a user's profile",
          example: { username: "you", name: "You" },
          audit: target.writes(target.user),
          access: "owner",
          scope: "user:update",
          outlivesGrant: true,
        }),
      },
    )
    .put(
      "/:user/status/:status",
      async ({ caller, params }) => {
        const user = await findManagedUser(ctx, params.user, caller);
        return presentKnownUser(await setSuspended(ctx, user, caller, params.status === "suspend"));
      },
      {
        user: true,
        params: statusPath,
        response: { 200: User, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "setUserStatus",
          summary: "Suspend or activate a user",
          description:
            "Suspending revokes the user's sessions, tokens and application grants, and closes their open streams immediately. The user can't sign in until they are activated.",
          audit: target.writes(target.user),
          access: "user_admins",
          scope: "user:update",
          changesAccess: "never",
        }),
      },
    );
