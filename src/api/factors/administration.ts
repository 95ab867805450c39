// Administration of a user's second factors: see them, require one, and remove all for a user who has lost them.
import { toRfc3339 } from "#base/clock.ts";
import { forbidden } from "#base/errors.ts";
import { listPasskeys } from "#db/users/passkeys.ts";
import { canManageUser } from "#domain/access.ts";
import { requireFactor, resetFactors } from "#domain/factors/administration.ts";
import { needsFactor } from "#domain/factors/policy.ts";
import { findUserInPath, type KnownUser, userPath } from "#domain/users/find.ts";
import { Factors, RequireFactor } from "#schema/users/second-factor.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Second factors"];

const presentFactors = async (ctx: ApiContext, user: KnownUser): Promise<Factors> => {
  const { factors } = ctx.accounts;
  const totp = await factors.totp(user.id);
  return {
    totp: totp ? { created_at: toRfc3339(totp.created_at) } : null,
    passkeys: (await ctx.store.all(listPasskeys({ user_id: user.id }))).length,
    recovery_codes_left: await factors.recoveryCodesLeft(user.id),
    required: needsFactor(ctx.config.require_second_factor, user),
    required_by_administrator: user.second_factor_required,
  };
};

export const factorAdministration = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:user/factors",
      async ({ caller, params }) => {
        const user = await findUserInPath(ctx.store, params.user, caller);
        if (user.id !== caller.user_id && !canManageUser(caller, user)) throw forbidden();
        return presentFactors(ctx, user);
      },
      {
        enrolling: true,
        params: userPath,
        response: { 200: Factors, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getFactors",
          summary: "Get a user's second factors",
          description: "Available to the user and user administrators.",
          access: "owner",
          scope: "all",
        }),
      },
    )
    .put(
      "/:user/factors/required",
      async ({ caller, params, body }) => {
        const user = await findUserInPath(ctx.store, params.user, caller);
        return presentFactors(ctx, await requireFactor(ctx, user, caller, body.required));
      },
      {
        user: true,
        params: userPath,
        body: RequireFactor,
        response: { 200: Factors, ...fails(400, 401, 403, 404, 415) },
        detail: operation({
          tags,
          operationId: "requireFactor",
          summary: "Require a second factor for a user",
          description: "Until the user enrolls a second factor, they can't do anything else.",
          example: { required: true },
          access: "user_admins",
          scope: "all",
        }),
      },
    )
    .delete(
      "/:user/factors",
      async ({ caller, params, status }) => {
        await resetFactors(ctx, await findUserInPath(ctx.store, params.user, caller), caller);
        return status(204, undefined);
      },
      {
        user: true,
        params: userPath,
        response: { 204: NoContent, ...fails(401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "deleteFactors",
          summary: "Reset a user's second factors",
          description:
            "Deletes all second factors of a user who lost them. Requires permission to reset the user's password.",
          access: "user_admins",
          scope: "all",
        }),
      },
    );
