// A new password: for oneself with the old one, for others by those who may. Every other key of the user ends (rule ID-7).
import { Elysia } from "elysia";
import { forbidden, invalidField } from "#base/errors.ts";
import { deleteKeysOf } from "#db/users/api-keys.ts";
import { isPasswordStill, isWithoutRolesStill, updateUser } from "#db/users/users.ts";
import { isOwner, mayResetPassword } from "#domain/access.ts";
import { userChanged } from "#domain/users/audit.ts";
import { userAt, userPath } from "#domain/users/user.ts";
import { UpdatePasswordRequest } from "#schema/user.ts";
import type { ApiContext } from "../context.ts";
import { mustBeProved } from "../factors/proof.ts";
import { callers } from "../http/caller.ts";
import { fails, NoContent } from "../http/responses.ts";

export const userPassword = (ctx: ApiContext) =>
  new Elysia().use(callers).put(
    "/:user/password",
    async ({ caller, params, body, request, status }) => {
      const { store, clock, accounts } = ctx;
      const user = await userAt(store, params.user, caller);
      const isSelf = user.id === caller.user_id;
      if (!isSelf && !mayResetPassword(caller, user)) throw forbidden("You may not set this user's password.");
      if (user.login_type !== "password") throw invalidField("password", "This user does not sign in with a password.");
      await accounts.passwords.check(body.password, user);
      if (isSelf) {
        // Without a second factor the old password is all the proof there can be.
        if ((await accounts.factors.methodsOf(user.id)).length > 0) await mustBeProved(ctx, caller);
        const address = ctx.addresses.of(request);
        const guess = accounts.countGuess({ address, account: user.email, isKnown: true });
        const isRight = await guess.verify(body.old_password ?? "", user.password_hash);
        if (!isRight) throw invalidField("old_password", "This is not the present password.");
      }
      const password_hash = await accounts.passwords.hash(body.password);
      const except = isSelf ? caller.key_id : "";
      const now = clock.now();
      await store.commit([
        // Somebody else may have set another one while this was hashed.
        isPasswordStill({ id: user.id, password_hash: user.password_hash }),
        // Whoever may do this to people without a role only, may not when one was given meanwhile.
        ...(isSelf || isOwner(caller) ? [] : [isWithoutRolesStill({ id: user.id })]),
        updateUser(user.id, { password_hash, updated_at: now }),
        deleteKeysOf({ user_id: user.id, except }),
        userChanged(user, { password_hash }, now),
      ]);
      ctx.topics.publish("key_gone", user.id, { except });
      return status(204, undefined);
    },
    {
      user: true,
      params: userPath,
      body: UpdatePasswordRequest,
      response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 415, 429) },
      detail: {
        tags: ["Users"],
        summary: "Set a password",
        description: "Every other sign-in and token of the user ends.",
      },
    },
  );
