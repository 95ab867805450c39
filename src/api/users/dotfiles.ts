// Dotfiles settings of a user.
import { findSelf } from "#domain/users/appearance.ts";
import { removeDotfiles, setDotfiles, toDotfiles } from "#domain/users/dotfiles.ts";
import { userPath } from "#domain/users/find.ts";
import { Dotfiles, UpdateDotfiles } from "#schema/users/dotfiles.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Users"];
const userOptions = { user: true, params: userPath } as const;

export const userDotfiles = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get("/:user/dotfiles", async ({ caller, params }) => toDotfiles(await findSelf(ctx, params.user, caller)), {
      ...userOptions,
      response: { 200: Dotfiles, ...fails(401, 403, 404) },
      detail: operation({
        tags,
        operationId: "getDotfiles",
        summary: "Get your dotfiles",
        access: "owner_only",
        scope: "user:read_personal",
      }),
    })
    .put(
      "/:user/dotfiles",
      async ({ caller, params, body }) => setDotfiles(ctx, await findSelf(ctx, params.user, caller), body),
      {
        ...userOptions,
        body: UpdateDotfiles,
        response: { 200: Dotfiles, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "updateDotfiles",
          summary: "Update your dotfiles",
          description:
            "Workspaces install them before their start scripts, from the next start, if the template allows it. Omitted fields are cleared.",
          example: { url: "https://github.com/ada/dotfiles", branch: "main" },
          audit: target.writes(target.user),
          outlivesGrant: true,
          access: "owner_only",
          scope: ["user:update_personal", "workspace:ssh"],
        }),
      },
    )
    .delete(
      "/:user/dotfiles",
      async ({ caller, params, set }) => {
        await removeDotfiles(ctx, await findSelf(ctx, params.user, caller));
        set.status = 204;
      },
      {
        ...userOptions,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteDotfiles",
          summary: "Delete your dotfiles",
          description: "Workspaces stop installing them. Existing files are kept.",
          audit: target.writes(target.user),
          access: "owner_only",
          scope: "user:update_personal",
          outlivesGrant: true,
        }),
      },
    );
