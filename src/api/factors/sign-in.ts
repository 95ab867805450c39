// The second step of a sign-in: checks a second-factor code for the challenge returned by the first step, which was a password or a
// provider sign-in. Changes from the first step are written together with the session (rule OI-9).
import { AppError } from "#base/errors.ts";
import { sha256 } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { findUser, guardPassword, type User } from "#db/users/users.ts";
import { admitPerson } from "#domain/oidc/admit.ts";
import type { Identity } from "#domain/oidc/identity.ts";
import { noteFailedSignIn, requireActive } from "#domain/users/sign-in.ts";
import { type FactorMethod, type LoginRefused, SecondFactorLogin } from "#schema/users/second-factor.ts";
import { SessionToken } from "#schema/users/user.ts";
import type { ApiContext } from "../context.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { openSession } from "../users/new-session.ts";

const PURPOSE = "sign_in";
const PATH = "/login/second-factor";

/** The identity from a provider sign-in. */
type ProviderIdentity = { readonly provider: string; readonly identity: Identity };

/**
 * The user and a digest of their account. A new password, a suspension or any other change of the account invalidates unfinished sign-ins.
 */
type PendingSignIn = { readonly user_id: string; readonly account: string; readonly oidc?: ProviderIdentity };

const computeDigest = (user: User): string => sha256(`sign-in ${user.updated_at} ${user.password_hash}`);

/** Returns the response to a correct first step when a second factor is required. */
export const requestFactor = (
  ctx: ApiContext,
  user: User,
  methods: FactorMethod[],
  oidc?: ProviderIdentity,
): LoginRefused => {
  const data: PendingSignIn = { user_id: user.id, account: computeDigest(user), ...(oidc ? { oidc } : {}) };
  return {
    message: "A second factor is required.",
    detail:
      "Send the challenge with a code of the authenticator app, or a recovery code, to /users/login/second-factor.",
    validations: [{ field: "second_factor", detail: "is needed" }],
    second_factor: { ...ctx.accounts.factors.challenges.offer(PURPOSE, data), methods },
  };
};

/** Returns the user who started this sign-in. Rejects with 401 when it was not started here, has expired, or is finished. */
export const getPendingSignIn = async (ctx: ApiContext, challenge: string) => {
  const openedChallenge = ctx.accounts.factors.challenges.open<PendingSignIn>(PURPOSE, challenge);
  const user = openedChallenge && (await ctx.store.get(findUser({ id: openedChallenge.data.user_id })));
  if (!openedChallenge || !user || computeDigest(user) !== openedChallenge.data.account) throw makeExpiredError();
  requireActive(user);
  return { opened: openedChallenge, user, first: await recheckFirstStep(ctx, user, openedChallenge.data.oidc) };
};

type FirstStep = {
  readonly login_type: "password" | "oidc";
  readonly isPasswordProved: boolean;
  readonly changes: readonly Statement[];
  readonly revokesKeys: boolean;
};

/** Returns what the first step proved and what it changes. A provider sign-in is checked again, because much may have changed since. */
const recheckFirstStep = async (
  ctx: ApiContext,
  user: User,
  oidc: ProviderIdentity | undefined,
): Promise<FirstStep> => {
  if (!oidc) return { login_type: "password", isPasswordProved: true, changes: [], revokesKeys: false };
  const provider = ctx.oidc.find(oidc.provider);
  const admission = provider && (await admitPerson(ctx, provider, oidc.identity));
  if (admission?.user.id !== user.id) throw makeExpiredError();
  const { changes, revokesKeys } = admission;
  return { login_type: "oidc", isPasswordProved: false, changes, revokesKeys };
};

const makeExpiredError = (): AppError => new AppError("unauthenticated", "This sign-in has expired. Start it again.");

const makeWrongCodeError = (): AppError => new AppError("unauthenticated", "The code is wrong or was used before.");

export const secondFactorSignIn = (ctx: ApiContext) =>
  routes().post(
    PATH,
    async ({ body, request, set, status }) => {
      const { factors } = ctx.accounts;
      const { opened, user, first } = await getPendingSignIn(ctx, body.challenge);
      const codeStatements = await factors.redeem(user, body.code);
      if (!codeStatements) {
        await noteFailedSignIn(ctx, user);
        throw makeWrongCodeError();
      }
      if (!factors.challenges.spend(opened)) throw makeExpiredError();
      const passwordGuard = guardPassword({ id: user.id, password_hash: user.password_hash });
      try {
        const provenFactors = { password: first.isPasswordProved, factor: true };
        const guards = [passwordGuard, ...codeStatements, ...first.changes];
        const { token, cookie } = await openSession(ctx, user, request, provenFactors, guards, {
          login_type: first.login_type,
          revokesKeys: first.revokesKeys,
        });
        set.headers["set-cookie"] = cookie;
        return status(201, { session_token: token });
      } catch (error) {
        factors.challenges.restore(opened);
        throw error instanceof CommitError && error.reason === "stale" ? makeWrongCodeError() : error;
      }
    },
    {
      body: SecondFactorLogin,
      response: {
        201: SessionToken,
        ...fails(400, 401, 415, 429, 503),
      },
      detail: operation({
        reads: "public",
        tags: ["Users"],
        operationId: "completeSignIn",
        access: "credentials",
        summary: "Complete a sign-in with a second factor",
        description: "Completes a sign-in that returned 401 with `second_factor`. Also sets the session cookie.",
        security: [],
        example: { challenge: "from the response to the sign-in", code: "123456" },
      }),
    },
  );
