// Proving again who one is. What removes or adds a way to sign in is done only by a session whose user has done so lately, with all they
// have: a session that was made by the password alone cannot touch the second factor (rule FA-9).
import { AppError, forbidden, invalidField } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import { findKey } from "#db/users/api-keys.ts";
import { isPasswordStill } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";
import { type KnownUser, userAt } from "../users/find.ts";
import { PREBUILDS_USER_ID } from "../users/first-user.ts";
import { GRANTED } from "../users/keys.ts";

/** How long a proof is good for. */
const PROOF_MS = 900_000;

/** The caller's own account, which has a password. 404, 403 for others, 400 for accounts without a password. */
export const ownAccountAt = async (ctx: DomainContext, text: string, caller: UserCaller): Promise<KnownUser> => {
  const user = await userAt(ctx.store, text, caller);
  if (user.id !== caller.user_id || user.id === PREBUILDS_USER_ID) throw forbidden("Only the user can do this.");
  if (user.login_type === "password") return user;
  throw new AppError("invalid", "This user does not sign in with a password.", {
    detail: "Second factors are managed where they sign in.",
  });
};

/** How people sign in is theirs to change, never an application's, whatever it was granted (rule OA-17). 403. */
export const mustBeOwnKey = async ({ store }: Pick<DomainContext, "store">, { key_id }: UserCaller): Promise<void> => {
  const key = await store.get(findKey({ id: key_id }));
  if (key?.login_type === GRANTED) throw forbidden("An application cannot change how people sign in.");
};

type Given = { readonly password: string; readonly code?: string | undefined };

/** The statements that use the proof of a request from this address up, for the batch of what it allows. 400 naming what is wrong, 429 after too many tries. */
export const prove = async (
  ctx: DomainContext,
  address: string,
  user: KnownUser,
  caller: UserCaller,
  { password, code }: Given,
): Promise<Statement[]> => {
  await mustBeOwnKey(ctx, caller);
  const { accounts } = ctx;
  const { factors } = accounts;
  const guess = accounts.countGuess({ address, account: user.email, isKnown: true });
  if (!(await guess.verify(password, user.password_hash))) {
    throw invalidField("password", "This is not the current password.");
  }
  const still = isPasswordStill({ id: user.id, password_hash: user.password_hash });
  if ((await factors.methodsOf(user.id)).length === 0) return [still];
  if (code === undefined) throw invalidField("code", "A second-factor code is also required.");
  const used = await factors.take(user, code);
  if (!used) throw invalidField("code", "The code is wrong or was used before.");
  return [still, ...used];
};

/** Throws 403 unless the caller has proved within the last 15 minutes, with all their factors, who they are. */
export const mustBeProved = async (ctx: DomainContext, caller: UserCaller): Promise<void> => {
  await mustBeOwnKey(ctx, caller);
  const key = await ctx.store.get(findKey({ id: caller.key_id }));
  const hasFactor = (await ctx.accounts.factors.methodsOf(caller.user_id)).length > 0;
  const at = hasFactor ? key?.factor_proved_at : key?.password_proved_at;
  if (typeof at === "number" && ctx.clock.now() - at < PROOF_MS) return;
  throw new AppError("forbidden", "Confirm that it's you first.", {
    detail: "POST /users/me/confirm takes the password, and a code where there is a second factor.",
    validations: [{ field: "confirmation", detail: "is required or has expired" }],
  });
};
