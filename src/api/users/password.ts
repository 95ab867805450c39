// Sets a new password. Users need their old one; administrators can also set another user's. All other keys of the user are revoked (rule
// ID-7).
import { findUserInPath, userPath } from "#domain/users/find.ts";
import { setPassword } from "#domain/users/password.ts";
import { UpdatePasswordRequest } from "#schema/users/user.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const userPassword = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .put(
      "/:user/password",
      async ({ caller, params, body, request, status }) => {
        const user = await findUserInPath(ctx.store, params.user, caller);
        await setPassword(ctx, user, caller, body, ctx.addresses.of(request));
        return status(204, undefined);
      },
      {
        user: true,
        params: userPath,
        body: UpdatePasswordRequest,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 415, 429) },
        detail: operation({
          tags: ["Users"],
          operationId: "setPassword",
          summary: "Update a user's password",
          description: "Revokes all other sessions and tokens of the user.",
          example: { old_password: "your password", password: "a long enough secret" },
          audit: target.writes(target.user),
          access: "owner",
          scope: "all",
        }),
      },
    );
