// Reauthentication. Adding or removing a sign-in method requires a session whose user has recently proven their identity with all their
// factors: a session created by password alone cannot change the second factor (rule FA-9).
import { AppError, forbidden, invalidField } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import { findKey } from "#db/users/api-keys.ts";
import { guardPassword } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";
import { findUserInPath, type KnownUser } from "../users/find.ts";
import { PREBUILDS_USER_ID } from "../users/first-user.ts";
import { GRANTED } from "../users/keys.ts";
import { isKnownAddress } from "../users/known-address.ts";

/** How long a proof is valid. */
const PROOF_TTL_MS = 900_000;

/**
 * Returns the caller's own account, which must have a password. Rejects with 404 or 403 for others, and with 400 for accounts without a
 * password.
 */
export const loadOwnAccount = async (ctx: DomainContext, text: string, caller: UserCaller): Promise<KnownUser> => {
  const user = await findUserInPath(ctx.store, text, caller);
  if (user.id !== caller.user_id || user.id === PREBUILDS_USER_ID) throw forbidden("Only the user can do this.");
  if (user.login_type === "password") return user;
  throw new AppError("invalid", "This user does not sign in with a password.", {
    detail: "Second factors are managed where they sign in.",
  });
};

/**
 * Rejects with 403 for an application, regardless of its grant (rules OA-17, OA-21): only users change how they sign in, and access that an
 * application gives to others would outlive its grant. `action` completes "An application cannot ...".
 */
export const requireOwnKey = async (
  { store }: Pick<DomainContext, "store">,
  { key_id }: UserCaller,
  action = "change how people sign in",
): Promise<void> => {
  const key = await store.get(findKey({ id: key_id }));
  if (key?.login_type === GRANTED) throw forbidden(`An application cannot ${action}.`);
};

/** Rejects with 403 for an application, and for a key with scopes, because the access that it gives to others could exceed its own. */
export const requireFullAccess = async (
  ctx: Pick<DomainContext, "store">,
  caller: UserCaller,
  action: string,
): Promise<void> => {
  await requireOwnKey(ctx, caller, action);
  if (!caller.scopes.includes("all"))
    throw forbidden(`A key with scopes cannot ${action}. Use a key with full access.`);
};

type ProofInput = { readonly password: string; readonly code?: string | undefined };

/**
 * Returns the statements that use up the proof of a request from this address, for the batch of the change it allows. Rejects with 400 and
 * names what is wrong, or with 429 after too many attempts.
 */
export const prove = async (
  ctx: DomainContext,
  address: string,
  user: KnownUser,
  caller: UserCaller,
  { password, code }: ProofInput,
): Promise<Statement[]> => {
  await requireOwnKey(ctx, caller);
  const { accounts } = ctx;
  const { factors } = accounts;
  const isKnown = await isKnownAddress(ctx, user.email, address);
  const guess = accounts.countGuess({ address, account: user.email, isKnown, isSignedIn: true });
  if (!(await guess.verify(password, user.password_hash))) {
    throw invalidField("password", "This is not the current password.");
  }
  const guard = guardPassword({ id: user.id, password_hash: user.password_hash });
  if ((await factors.listMethods(user.id)).length === 0) return [guard];
  if (code === undefined) throw invalidField("code", "A second-factor code is also required.");
  const redeemed = await factors.redeem(user, code);
  if (!redeemed) throw invalidField("code", "The code is wrong or was used before.");
  return [guard, ...redeemed];
};

/** Throws 403 unless the caller has proven their identity with all their factors in the last 15 minutes. */
export const requireProof = async (ctx: DomainContext, caller: UserCaller): Promise<void> => {
  await requireOwnKey(ctx, caller);
  const key = await ctx.store.get(findKey({ id: caller.key_id }));
  const hasFactor = (await ctx.accounts.factors.listMethods(caller.user_id)).length > 0;
  const provenAt = hasFactor ? key?.factor_proved_at : key?.password_proved_at;
  if (typeof provenAt === "number" && ctx.clock.now() - provenAt < PROOF_TTL_MS) return;
  throw new AppError("forbidden", "Confirm that it's you first.", {
    detail: "POST /users/me/confirm takes the password, and a code where there is a second factor.",
    validations: [{ field: "confirmation", detail: "is required or has expired" }],
  });
};
