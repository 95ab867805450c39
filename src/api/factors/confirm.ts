// Confirming who one is, for what a session may do only for 15 minutes afterwards (rule FA-9).
import { Elysia } from "elysia";
import { isKeyStill } from "#db/users/api-keys.ts";
import { userPath } from "#domain/users/user.ts";
import { ConfirmRequest } from "#schema/second-factor.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { fails, NoContent } from "../http/responses.ts";
import { noteProof } from "../users/new-session.ts";
import { ownAccountAt, prove } from "./proof.ts";

export const confirmation = (ctx: ApiContext) =>
  new Elysia().use(callers).post(
    "/:user/confirm",
    async ({ caller, params, body, request, status }) => {
      const user = await ownAccountAt(ctx, params.user, caller);
      const used = await prove(ctx, request, user, body);
      const now = ctx.clock.now();
      const hasFactor = (await ctx.accounts.factors.methodsOf(user.id)).length > 0;
      await ctx.store.commit([
        isKeyStill({ id: caller.key_id, now }),
        ...used,
        noteProof(caller.key_id, { password: true, factor: hasFactor }, now),
      ]);
      return status(204, undefined);
    },
    {
      enrolling: true,
      params: userPath,
      body: ConfirmRequest,
      response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 415, 429) },
      detail: {
        tags: ["Second factors"],
        summary: "Confirm who you are",
        description:
          "With the password, and a code where there is a second factor. For 15 minutes this session may then change how you sign in.",
      },
    },
  );
