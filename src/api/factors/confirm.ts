// Reauthentication. A session may do some actions only within 15 minutes after it (rule FA-9).
import { conflict, invalidField } from "#base/errors.ts";
import { confirmCaller } from "#domain/factors/confirm.ts";
import { requestPasskey, verifyPasskey } from "#domain/factors/passkey-proof.ts";
import { loadOwnAccount, prove } from "#domain/factors/proof.ts";
import { userPath } from "#domain/users/find.ts";
import { PasskeyChallenge, PasskeyProof } from "#schema/users/passkey.ts";
import { ConfirmRequest } from "#schema/users/second-factor.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const confirmation = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .use(passkeyConfirmation(ctx))
    .post(
      "/:user/confirm",
      async ({ caller, params, body, request, status }) => {
        const user = await loadOwnAccount(ctx, params.user, caller);
        const proofStatements = await prove(ctx, ctx.addresses.of(request), user, caller, body);
        const hasFactor = (await ctx.accounts.factors.listMethods(user.id)).length > 0;
        await confirmCaller(ctx, caller, { password: true, factor: hasFactor }, proofStatements);
        return status(204, undefined);
      },
      {
        enrolling: true,
        params: userPath,
        body: ConfirmRequest,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 415, 429) },
        detail: operation({
          tags: ["Second factors"],
          operationId: "confirmIdentity",
          summary: "Confirm your identity",
          description:
            "Requires your password, and a code if you have a second factor. For 15 minutes, this session can then change sign-in settings.",
          example: { password: "your password" },
          audit: target.writes(target.user),
          access: "owner_only",
          scope: "all",
        }),
      },
    );

const PURPOSE = "confirm";

const passkeyConfirmation = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:user/confirm/passkey/start",
      async ({ caller, params, status }) => {
        const { id } = await loadOwnAccount(ctx, params.user, caller);
        if (!(await ctx.accounts.factors.hasPasskeys(id))) throw conflict("There is no passkey.");
        return status(201, await requestPasskey(ctx, PURPOSE, { user_id: id }, id));
      },
      {
        user: true,
        params: userPath,
        response: { 201: PasskeyChallenge, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags: ["Second factors"],
          operationId: "startPasskeyConfirmation",
          summary: "Start confirming your identity with a passkey",
          access: "owner_only",
          scope: "all",
        }),
      },
    )
    .post(
      "/:user/confirm/passkey",
      async ({ caller, params, body, status }) => {
        const { id } = await loadOwnAccount(ctx, params.user, caller);
        const proof = await verifyPasskey<{ user_id: string }>(ctx, PURPOSE, body);
        if (proof?.passkey.user_id !== id || proof.of.user_id !== id) {
          throw invalidField("credential", "This passkey does not confirm who you are.");
        }
        await confirmCaller(ctx, caller, { password: true, factor: true }, proof.statements);
        return status(204, undefined);
      },
      {
        user: true,
        params: userPath,
        body: PasskeyProof,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 415) },
        detail: operation({
          tags: ["Second factors"],
          operationId: "confirmIdentityWithPasskey",
          summary: "Confirm your identity with a passkey",
          audit: target.writes(target.user),
          example: {
            challenge: "from the response to the start request",
            credential: { id: "AQID", rawId: "AQID", type: "public-key", response: {} },
          },
          access: "owner_only",
          scope: "all",
        }),
      },
    );
