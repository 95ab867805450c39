// A user's linked provider accounts, for user administrators.
import { removeOidcLinks } from "#domain/oidc/unlink.ts";
import { findUserInPath, userPath } from "#domain/users/find.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const oidcLinks = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .delete(
      "/:user/oidc-links",
      async ({ caller, params, set }) => {
        await removeOidcLinks(ctx, await findUserInPath(ctx.store, params.user, caller), caller);
        set.status = 204;
      },
      {
        user: true,
        params: userPath,
        response: { 204: NoContent, ...fails(401, 403, 404, 409) },
        detail: operation({
          tags: ["Users"],
          operationId: "deleteOidcLinks",
          summary: "Delete a user's sign-in links",
          description:
            "Unlinks the user's accounts at sign-in providers and ends the user's sessions. The next verified sign-in with the user's email address can link the account again, if the provider allows linking. Available to owners, and to user-admins if the user has no role.",
          access: "user_admins",
          scope: "all",
        }),
      },
    );
