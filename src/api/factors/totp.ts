// A user's own authenticator app: enrolled with a secret, confirmed with a code, and disabled with the password and a code (rules FA-1 to
// FA-4, FA-9).
import { conflict } from "#base/errors.ts";
import { loadOwnAccount, prove } from "#domain/factors/proof.ts";
import { beginTotp, confirmTotp, removeTotp } from "#domain/factors/totp.ts";
import { userPath } from "#domain/users/find.ts";
import { ConfirmTotp, PasswordAndCode, RecoveryCodes, TotpEnrolment } from "#schema/users/second-factor.ts";
import { renderQrCode } from "#src/authentication/qr.ts";
import { formatOtpauthUri } from "#src/authentication/totp.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Second factors"];
export const totp = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:user/factors/totp",
      async ({ caller, params, status }) => {
        const user = await loadOwnAccount(ctx, params.user, caller);
        const { enrolment, expires_at, secret } = await beginTotp(ctx, user, caller);
        const uri = formatOtpauthUri(secret, { issuer: `Slipway (${ctx.accessUrl.hostname})`, account: user.email });
        return status(201, { enrolment, expires_at, secret, uri, qr_svg: renderQrCode(uri) });
      },
      {
        enrolling: true,
        params: userPath,
        response: { 201: TotpEnrolment, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "startTotpEnrolment",
          summary: "Start enrolling an authenticator app",
          description:
            "Has no effect until confirmed with a code. Returns 403 with the field `confirmation` if you must confirm your identity first.",
          access: "owner_only",
          scope: "all",
        }),
      },
    )
    .post(
      "/:user/factors/totp/confirm",
      async ({ caller, params, body, status }) => {
        const user = await loadOwnAccount(ctx, params.user, caller);
        return status(201, { recovery_codes: await confirmTotp(ctx, user, caller, body) });
      },
      {
        enrolling: true,
        params: userPath,
        body: ConfirmTotp,
        response: { 201: RecoveryCodes, ...fails(400, 401, 403, 404, 409, 415) },
        detail: operation({
          tags,
          operationId: "confirmTotpEnrolment",
          summary: "Enroll an authenticator app",
          description:
            "Completes the enrollment. Afterwards, signing in with the password also requires a code. The first second factor returns recovery codes, once.",
          example: { enrolment: "from the response to the start request", code: "123456" },
          access: "owner_only",
          scope: "all",
        }),
      },
    )
    .delete(
      "/:user/factors/totp",
      async ({ caller, params, body, request, status }) => {
        const user = await loadOwnAccount(ctx, params.user, caller);
        if (!(await ctx.accounts.factors.totp(user.id))) throw conflict("There is no authenticator app.");
        await removeTotp(ctx, user, await prove(ctx, ctx.addresses.of(request), user, caller, body));
        return status(204, undefined);
      },
      {
        user: true,
        params: userPath,
        body: PasswordAndCode,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 415, 429) },
        detail: operation({
          tags,
          operationId: "disableTotp",
          summary: "Disable the authenticator app",
          description:
            "Requires the password and a code. If this was the last second factor, the recovery codes are also deleted.",
          example: { password: "your password", code: "123456" },
          access: "owner_only",
          scope: "all",
        }),
      },
    );
