// A user's authenticator app: enrolled with a secret, confirmed with a code, disabled with the password and a code (rules FA-1 to FA-4,
// FA-9).
import { conflict, invalid, invalidField } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { guardKey } from "#db/users/api-keys.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";
import type { KnownUser } from "../users/find.ts";
import { recordProof } from "../users/sign-in.ts";
import { requireProof } from "./proof.ts";

const PURPOSE = "totp_enrolment";
const ENROLLMENT_TTL_MS = 900_000;

type PendingTotp = { readonly user_id: string; readonly secret: string };

const alreadyEnabled = () => conflict("An authenticator app is already set up. Remove it first.");

/** Returns a secret for the app, which takes effect only once a code confirms it. */
export const beginTotp = async (ctx: DomainContext, user: KnownUser, caller: UserCaller) => {
  const { factors } = ctx.accounts;
  await requireProof(ctx, caller);
  if (await factors.totp(user.id)) throw alreadyEnabled();
  const secret = factors.createTotpSecret();
  const pending: PendingTotp = { user_id: user.id, secret };
  const { challenge: enrolment, expires_at } = factors.challenges.offer(PURPOSE, pending, ENROLLMENT_TTL_MS);
  return { enrolment, expires_at, secret };
};

/** Enables the app: from now on, sign-in requires a code. Returns the recovery codes if it is the first factor. */
export const confirmTotp = async (
  ctx: DomainContext,
  user: KnownUser,
  caller: UserCaller,
  { enrolment, code }: { readonly enrolment: string; readonly code: string },
): Promise<string[]> => {
  const { factors } = ctx.accounts;
  await requireProof(ctx, caller);
  const opened = factors.challenges.open<PendingTotp>(PURPOSE, enrolment);
  if (opened?.data.user_id !== user.id) {
    throw invalid("This setup has expired. Start again.");
  }
  const step = factors.findCodeStep(opened.data.secret, code);
  if (step === undefined) throw invalidField("code", "The code doesn't match the one that the app shows now.");
  if (!factors.challenges.spend(opened)) throw alreadyEnabled();
  const isFirst = (await factors.listMethods(user.id)).length === 0;
  const { codes, statements } = isFirst ? factors.renewRecoveryCodes(user) : { codes: [], statements: [] };
  const now = ctx.clock.now();
  try {
    await ctx.store.commit([
      guardKey({ id: caller.key_id, now }),
      ...factors.addTotp(user, opened.data.secret, step),
      ...statements,
      recordProof(caller.key_id, { password: false, factor: true }, now),
    ]);
  } catch (error) {
    factors.challenges.restore(opened);
    throw error instanceof CommitError && error.reason === "constraint" ? alreadyEnabled() : error;
  }
  return codes;
};

/** `used` are the statements that use up the request's proof. */
export const removeTotp = async (ctx: DomainContext, user: KnownUser, used: readonly Statement[]): Promise<void> => {
  await ctx.store.commit([...used, ...(await ctx.accounts.factors.removeTotp(user))]);
};
