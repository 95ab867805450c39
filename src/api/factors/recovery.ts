// New recovery codes in the place of the old ones (rule FA-5).
import { Elysia } from "elysia";
import { conflict } from "#base/errors.ts";
import { isKeyStill } from "#db/users/api-keys.ts";
import { userPath } from "#domain/users/user.ts";
import { RecoveryCodes } from "#schema/second-factor.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { fails } from "../http/responses.ts";
import { mustBeProved, ownAccountAt } from "./proof.ts";

export const recoveryCodes = (ctx: ApiContext) =>
  new Elysia().use(callers).post(
    "/:user/factors/recovery-codes",
    async ({ caller, params, status }) => {
      const { factors } = ctx.accounts;
      const user = await ownAccountAt(ctx, params.user, caller);
      if ((await factors.methodsOf(user.id)).length === 0) throw conflict("There is no second factor to recover.");
      await mustBeProved(ctx, caller);
      const { codes, statements } = factors.renewRecoveryCodes(user);
      await ctx.store.commit([isKeyStill({ id: caller.key_id, now: ctx.clock.now() }), ...statements]);
      return status(201, { recovery_codes: codes });
    },
    {
      user: true,
      params: userPath,
      response: { 201: RecoveryCodes, ...fails(400, 401, 403, 404, 409) },
      detail: {
        tags: ["Second factors"],
        summary: "Make new recovery codes",
        description: "The old ones count no more. 403 naming `confirmation`: confirm first who you are.",
      },
    },
  );
