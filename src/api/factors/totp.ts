// The authenticator app of a user: begun with a secret, confirmed with a code made of it, disabled with the password and a code. Each for
// themselves (rules FA-1 to FA-4, FA-9).
import { Elysia } from "elysia";
import { conflict, invalid, invalidField } from "#base/errors.ts";
import { CommitError } from "#db/engine/store.ts";
import { isKeyStill } from "#db/users/api-keys.ts";
import { userPath } from "#domain/users/user.ts";
import { ConfirmTotp, PasswordAndCode, RecoveryCodes, TotpEnrolment } from "#schema/second-factor.ts";
import { qrSvg } from "#src/authentication/qr.ts";
import { otpauthUri } from "#src/authentication/totp.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { fails, NoContent } from "../http/responses.ts";
import { noteProof } from "../users/new-session.ts";
import { mustBeProved, ownAccountAt, prove } from "./proof.ts";

const tags = ["Second factors"];
const PURPOSE = "totp_enrolment";
const ENROLMENT_MS = 900_000;

type Begun = { readonly user_id: string; readonly secret: string };

const enabledAlready = () => conflict("There is an authenticator app already. Disable it first.");

export const totp = (ctx: ApiContext) =>
  new Elysia()
    .use(callers)
    .post(
      "/:user/factors/totp",
      async ({ caller, params, status }) => {
        const { factors } = ctx.accounts;
        const user = await ownAccountAt(ctx, params.user, caller);
        await mustBeProved(ctx, caller);
        if (await factors.totp(user.id)) throw enabledAlready();
        const secret = factors.newTotpSecret();
        const begun: Begun = { user_id: user.id, secret };
        const { challenge: enrolment, expires_at } = factors.challenges.offer(PURPOSE, begun, ENROLMENT_MS);
        const uri = otpauthUri(secret, { issuer: `Slipway (${ctx.accessUrl.hostname})`, account: user.email });
        return status(201, { enrolment, expires_at, secret, uri, qr_svg: qrSvg(uri) });
      },
      {
        enrolling: true,
        params: userPath,
        response: { 201: TotpEnrolment, ...fails(400, 401, 403, 404, 409) },
        detail: {
          tags,
          summary: "Begin to enrol an authenticator app",
          description: "Nothing counts until a code confirms it. 403 naming `confirmation`: confirm first who you are.",
        },
      },
    )
    .post(
      "/:user/factors/totp/confirm",
      async ({ caller, params, body, status }) => {
        const { factors } = ctx.accounts;
        const user = await ownAccountAt(ctx, params.user, caller);
        await mustBeProved(ctx, caller);
        const opened = factors.challenges.open<Begun>(PURPOSE, body.enrolment);
        if (opened?.data.user_id !== user.id) {
          throw invalid("This enrolment was begun too long ago, or is over. Begin it again.");
        }
        const step = factors.stepOf(opened.data.secret, body.code);
        if (step === undefined) throw invalidField("code", "This is not the code that the app shows now.");
        if (!factors.challenges.spend(opened)) throw enabledAlready();
        const isFirst = (await factors.methodsOf(user.id)).length === 0;
        const { codes, statements } = isFirst ? factors.renewRecoveryCodes(user) : { codes: [], statements: [] };
        const now = ctx.clock.now();
        try {
          await ctx.store.commit([
            isKeyStill({ id: caller.key_id, now }),
            ...factors.addTotp(user, opened.data.secret, step),
            ...statements,
            noteProof(caller.key_id, { password: false, factor: true }, now),
          ]);
        } catch (error) {
          factors.challenges.restore(opened);
          throw error instanceof CommitError && error.reason === "constraint" ? enabledAlready() : error;
        }
        return status(201, { recovery_codes: codes });
      },
      {
        enrolling: true,
        params: userPath,
        body: ConfirmTotp,
        response: { 201: RecoveryCodes, ...fails(400, 401, 403, 404, 409, 415) },
        detail: {
          tags,
          summary: "Enrol an authenticator app",
          description:
            "From now on signing in with the password needs a code, too. With the first second factor come recovery codes, once.",
        },
      },
    )
    .delete(
      "/:user/factors/totp",
      async ({ caller, params, body, request, status }) => {
        const { factors } = ctx.accounts;
        const user = await ownAccountAt(ctx, params.user, caller);
        if (!(await factors.totp(user.id))) throw conflict("There is no authenticator app.");
        const used = await prove(ctx, request, user, body);
        await ctx.store.commit([...used, ...(await factors.removeTotp(user))]);
        return status(204, undefined);
      },
      {
        user: true,
        params: userPath,
        body: PasswordAndCode,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 415, 429) },
        detail: {
          tags,
          summary: "Disable the authenticator app",
          description: "Takes the password and a code. The recovery codes go with the last factor.",
        },
      },
    );
