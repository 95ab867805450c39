// Dotfiles settings of a user.
import { forbidden } from "#base/errors.ts";
import { requireOwnKey } from "#domain/factors/proof.ts";
import { removeDotfiles, setDotfiles, toDotfiles } from "#domain/users/dotfiles.ts";
import { userPath } from "#domain/users/find.ts";
import { findOwn } from "#domain/users/looks.ts";
import { Dotfiles, UpdateDotfiles } from "#schema/users/dotfiles.ts";
import { hasScope } from "#schema/users/scopes.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Users"];
const userOptions = { user: true, params: userPath } as const;

/** Dotfiles run in all workspaces of the user, also after the key that set them has ended. Rejects with 403. */
const checkRunsCode = async (ctx: ApiContext, caller: UserCaller): Promise<void> => {
  await requireOwnKey(ctx, caller, "set dotfiles");
  if (!hasScope(caller.scopes, "workspace:ssh"))
    throw forbidden("Dotfiles run in your workspaces, so the token also needs the scope workspace:ssh.");
};

/** `GET`, `PUT` and `DELETE users/{user}/dotfiles`. */
export const userDotfiles = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get("/:user/dotfiles", async ({ caller, params }) => toDotfiles(await findOwn(ctx, params.user, caller)), {
      ...userOptions,
      response: { 200: Dotfiles, ...fails(401, 403, 404) },
      detail: operation({
        tags,
        operationId: "getDotfiles",
        summary: "Get your dotfiles",
        scope: "user:read_personal",
      }),
    })
    .put(
      "/:user/dotfiles",
      async ({ caller, params, body }) => {
        const user = await findOwn(ctx, params.user, caller);
        await checkRunsCode(ctx, caller);
        return setDotfiles(ctx, user, body);
      },
      {
        ...userOptions,
        body: UpdateDotfiles,
        response: { 200: Dotfiles, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "updateDotfiles",
          summary: "Set your dotfiles",
          description:
            "Your workspaces install them before their start scripts, from the next start, if the template allows it. Omitted fields are empty. A token also needs the scope `workspace:ssh`.",
          example: { url: "https://github.com/ada/dotfiles", branch: "main" },
          audit: target.writes(target.user),
          scope: "user:update_personal",
        }),
      },
    )
    .delete(
      "/:user/dotfiles",
      async ({ caller, params, set }) => {
        await removeDotfiles(ctx, await findOwn(ctx, params.user, caller));
        set.status = 204;
      },
      {
        ...userOptions,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteDotfiles",
          summary: "Remove your dotfiles",
          description: "Workspaces stop installing them. Existing files are kept.",
          audit: target.writes(target.user),
          scope: "user:update_personal",
        }),
      },
    );
