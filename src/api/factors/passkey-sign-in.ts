// Passkey sign-in: alone, or as the second factor after a correct password (rules PK-2 to PK-4).
import { AppError } from "#base/errors.ts";
import { CommitError } from "#db/engine/store.ts";
import { findUser, guardPassword } from "#db/users/users.ts";
import { requestPasskey, verifyPasskey } from "#domain/factors/passkey-proof.ts";
import { requireActive } from "#domain/users/sign-in.ts";
import { PasskeyChallenge, PasskeyProof, StartPasskeyLogin } from "#schema/users/passkey.ts";
import { SessionToken } from "#schema/users/user.ts";
import type { ApiContext } from "../context.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { openSession } from "../users/new-session.ts";
import { getPendingSignIn } from "./sign-in.ts";

const tags = ["Users"];
const PURPOSE = "sign_in";
const PATH = "/login/passkey";
const START = "/login/passkey/start";

/** The password sign-in that this completes; empty if none exists. */
type SignInContext = { readonly second_factor: string };

const makePasskeyError = (): AppError => new AppError("unauthenticated", "This passkey does not sign you in.");

export const passkeySignIn = (ctx: ApiContext) =>
  routes()
    .post(
      START,
      async ({ body, status }) => {
        const { second_factor = "" } = body;
        const user_id = second_factor === "" ? undefined : (await getPendingSignIn(ctx, second_factor)).user.id;
        return status(201, await requestPasskey<SignInContext>(ctx, PURPOSE, { second_factor }, user_id));
      },
      {
        body: StartPasskeyLogin,
        response: { 201: PasskeyChallenge, ...fails(400, 401, 415) },
        detail: operation({
          reads: "public",
          tags,
          operationId: "startPasskeySignIn",
          access: "anyone",
          summary: "Start sign-in with a passkey",
          description:
            "Starts a sign-in with any passkey on the device, or with a passkey as the second factor after a correct password.",
          security: [],
          example: {},
        }),
      },
    )
    .post(
      PATH,
      async ({ body, request, set, status }) => {
        const { challenges } = ctx.accounts.factors;
        const proof = await verifyPasskey<SignInContext>(ctx, PURPOSE, body);
        const user = proof && (await ctx.store.get(findUser({ id: proof.passkey.user_id })));
        if (!proof || !user || user.login_type !== "password") throw makePasskeyError();
        requireActive(user);
        const pending = proof.of.second_factor === "" ? undefined : await getPendingSignIn(ctx, proof.of.second_factor);
        if (pending && (pending.user.id !== user.id || !challenges.spend(pending.opened))) throw makePasskeyError();
        const passwordGuard = guardPassword({ id: user.id, password_hash: user.password_hash });
        const guards = [...(pending ? [passwordGuard, ...pending.first.changes] : []), ...proof.statements];
        // A passkey counts as both factors: the user has the device and has unlocked it.
        const provenFactors = { password: true, factor: true };
        try {
          const { token, cookie } = await openSession(ctx, user, request, provenFactors, guards, {
            login_type: pending?.first.login_type ?? "password",
            revokesKeys: pending?.first.revokesKeys ?? false,
          });
          set.headers["set-cookie"] = cookie;
          return status(201, { session_token: token });
        } catch (error) {
          throw error instanceof CommitError && error.reason === "stale" ? makePasskeyError() : error;
        }
      },
      {
        body: PasskeyProof,
        response: {
          201: SessionToken,
          ...fails(400, 401, 415, 503),
        },
        detail: operation({
          reads: "public",
          tags,
          operationId: "signInWithPasskey",
          access: "credentials",
          summary: "Sign in with a passkey",
          description: "Returns a session token and also sets the session cookie.",
          security: [],
          example: {
            challenge: "from the response to the start request",
            credential: { id: "AQID", rawId: "AQID", type: "public-key", response: {} },
          },
        }),
      },
    );
