// What is known of a user's second factors, and what those who manage the user may do: require one, and take all away from who has lost them.
import { Elysia } from "elysia";
import { rfc3339 } from "#base/clock.ts";
import { conflict, forbidden, invalid } from "#base/errors.ts";
import { deleteFactorsOf } from "#db/second-factors.ts";
import { isKeyStill } from "#db/users/api-keys.ts";
import { listPasskeys } from "#db/users/passkeys.ts";
import { isWithoutRolesStill, updateUser } from "#db/users/users.ts";
import { isOwner, mayManageUser, mayResetPassword } from "#domain/access.ts";
import { userChanged } from "#domain/users/audit.ts";
import { PREBUILDS_USER_ID } from "#domain/users/first-user.ts";
import { type KnownUser, userAt, userPath } from "#domain/users/user.ts";
import { Factors, RequireFactor } from "#schema/second-factor.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { fails, NoContent } from "../http/responses.ts";
import { needsFactor } from "./policy.ts";
import { mustBeProved } from "./proof.ts";

const tags = ["Second factors"];

const show = async (ctx: ApiContext, user: KnownUser): Promise<Factors> => {
  const { factors } = ctx.accounts;
  const totp = await factors.totp(user.id);
  return {
    totp: totp ? { created_at: rfc3339(totp.created_at) } : null,
    passkeys: (await ctx.store.all(listPasskeys({ user_id: user.id }))).length,
    recovery_codes_left: await factors.recoveryCodesLeft(user.id),
    required: needsFactor(ctx.config.require_second_factor, user),
    required_by_administrator: user.second_factor_required,
  };
};

export const factorAdministration = (ctx: ApiContext) =>
  new Elysia()
    .use(callers)
    .get(
      "/:user/factors",
      async ({ caller, params }) => {
        const user = await userAt(ctx.store, params.user, caller);
        if (user.id !== caller.user_id && !mayManageUser(caller, user)) throw forbidden();
        return show(ctx, user);
      },
      {
        enrolling: true,
        params: userPath,
        response: { 200: Factors, ...fails(401, 403, 404) },
        detail: { tags, summary: "Get a user's second factors", description: "For the user, and who manages them." },
      },
    )
    .put(
      "/:user/factors/required",
      async ({ caller, params, body }) => {
        const user = await userAt(ctx.store, params.user, caller);
        if (!mayManageUser(caller, user) || user.id === PREBUILDS_USER_ID) {
          throw forbidden("You may not manage this user.");
        }
        if (user.id === caller.user_id) throw invalid("This is said of others: enrol one for yourself.");
        if (user.login_type !== "password") throw invalid("This user does not sign in with a password.");
        const patch = { second_factor_required: body.required };
        if (user.second_factor_required !== body.required) {
          const now = ctx.clock.now();
          await ctx.store.commit([updateUser(user.id, { ...patch, updated_at: now }), userChanged(user, patch, now)]);
          // What is open ends; what is asked next learns what there is to do.
          const isMissing = (await ctx.accounts.factors.methodsOf(user.id)).length === 0;
          if (body.required && isMissing) ctx.topics.publish("key_gone", user.id, {});
        }
        return show(ctx, { ...user, ...patch });
      },
      {
        user: true,
        params: userPath,
        body: RequireFactor,
        response: { 200: Factors, ...fails(400, 401, 403, 404, 415) },
        detail: {
          tags,
          summary: "Require a second factor of a user",
          description: "As long as they have none, they can do nothing but enrol one.",
        },
      },
    )
    .delete(
      "/:user/factors",
      async ({ caller, params, status }) => {
        const { factors } = ctx.accounts;
        const user = await userAt(ctx.store, params.user, caller);
        if (!mayResetPassword(caller, user) || user.id === PREBUILDS_USER_ID) {
          throw forbidden("You may not reset this user's second factors.");
        }
        if (user.id === caller.user_id) {
          throw forbidden("This is for others. Disable your own with your password and a code.");
        }
        await mustBeProved(ctx, caller);
        if ((await factors.methodsOf(user.id)).length === 0) throw conflict("This user has no second factor.");
        await ctx.store.commit([
          isKeyStill({ id: caller.key_id, now: ctx.clock.now() }),
          ...(isOwner(caller) ? [] : [isWithoutRolesStill({ id: user.id })]),
          ...deleteFactorsOf(user.id),
          factors.audited(user, { action: "delete", before: { kind: "all" }, additional: { reset: "by another" } }),
        ]);
        return status(204, undefined);
      },
      {
        user: true,
        params: userPath,
        response: { 204: NoContent, ...fails(401, 403, 404, 409) },
        detail: {
          tags,
          summary: "Take all second factors from a user",
          description: "For somebody who has lost them, by whoever may set their password.",
        },
      },
    );
