// Sign-in and sign-out: the session token, and the cookie for browsers (rules ID-3 to ID-7).

import { AppError } from "#base/errors.ts";
import { CommitError } from "#db/engine/store.ts";
import { guardPassword } from "#db/users/users.ts";
import { findProviderSignOut, loadOidcSession } from "#domain/oidc/session.ts";
import { findAccountByEmail } from "#domain/users/email.ts";
import { isKnownAddress } from "#domain/users/known-address.ts";
import { noteFailedSignIn, requireActive, signOut } from "#domain/users/sign-in.ts";
import { LoginRefused } from "#schema/users/second-factor.ts";
import { LoginRequest, SessionToken, SignedOut } from "#schema/users/user.ts";
import type { ApiContext } from "../context.ts";
import { passkeySignIn } from "../factors/passkey-sign-in.ts";
import { requestFactor, secondFactorSignIn } from "../factors/sign-in.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { makeCookie, openSession } from "./new-session.ts";

const tags = ["Users"];

const makeIncorrectError = (): AppError => new AppError("unauthenticated", "Incorrect email or password.");

const isStale = (error: unknown): boolean => error instanceof CommitError && error.reason === "stale";

export const session = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/login",
      async ({ body, request, set, status }) => {
        const { store, accounts } = ctx;
        const address = ctx.addresses.of(request);
        const isKnown = await isKnownAddress(ctx, body.email, address);
        const guess = accounts.countGuess({ address, account: body.email, isKnown });
        const user = await findAccountByEmail(store, body.email);
        const isCorrect = await guess.verify(body.password, user?.password_hash);
        if (!user) throw makeIncorrectError();
        if (!isCorrect || user.status === "suspended") {
          // Not awaited, because the response time must not reveal whether the account exists.
          void noteFailedSignIn(ctx, user);
        }
        if (!isCorrect) throw makeIncorrectError();
        requireActive(user);
        const methods = await accounts.factors.listMethods(user.id);
        if (methods.length > 0) return status(401, requestFactor(ctx, user, methods));
        const { id, password_hash } = user;
        const passwordGuard = guardPassword({ id, password_hash });
        const { token, cookie } = await openSession(ctx, user, request, { password: true, factor: false }, [
          passwordGuard,
        ]).catch((error) => Promise.reject(isStale(error) ? makeIncorrectError() : error));
        set.headers["set-cookie"] = cookie;
        return status(201, { session_token: token });
      },
      {
        body: LoginRequest,
        response: {
          201: SessionToken,
          401: LoginRefused,
          ...fails(400, 415, 429, 503),
        },
        detail: operation({
          reads: "public",
          tags,
          operationId: "signIn",
          access: "credentials",
          summary: "Sign in with a password",
          description:
            "Returns a session token, which expires 24 hours after its last use, and also sets the session cookie. 401 with `second_factor` means that the password was correct and a code is required.",
          security: [],
          example: { email: "you@example.com", password: "your password" },
        }),
      },
    )
    .use(secondFactorSignIn(ctx))
    .use(passkeySignIn(ctx))
    .post(
      "/logout",
      async ({ caller, set }) => {
        const session = await loadOidcSession(ctx, caller.key_id);
        await signOut(ctx, caller);
        set.headers["set-cookie"] = makeCookie(ctx, "");
        const url = await findProviderSignOut(ctx, session);
        return { message: "You are signed out.", ...(url ? { sign_out_url: url.href } : {}) };
      },
      {
        enrolling: true,
        response: { 200: SignedOut, ...fails(401) },
        detail: operation({
          tags,
          operationId: "signOut",
          summary: "Sign out",
          description: "Deletes the key that this request was made with.",
          access: "users",
          scope: "any",
        }),
      },
    );
