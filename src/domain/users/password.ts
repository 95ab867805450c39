// Sets a new password: one's own with the old one, or another user's as an administrator. All other keys of the user are revoked (rule
// ID-7).
import { forbidden, invalidField } from "#base/errors.ts";
import { deleteKeysByUser } from "#db/users/api-keys.ts";
import { guardPassword, guardWithoutRoles, updateUser } from "#db/users/users.ts";
import { markLossesOfUser } from "#db/workspaces/sharing.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canResetPassword, isOwner } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { requireOwnKey, requireProof } from "../factors/proof.ts";
import { auditUserChanged } from "./audit.ts";
import type { KnownUser } from "./find.ts";
import { isKnownAddress } from "./known-address.ts";

type NewPassword = { readonly password: string; readonly old_password?: string | undefined };

/**
 * `address` is the request's, for counting guesses. Rejects with 400 and names what is wrong, with 403, or with 429 after too many guesses.
 */
export const setPassword = async (
  ctx: DomainContext,
  user: KnownUser,
  caller: UserCaller,
  { password, old_password = "" }: NewPassword,
  address: string,
): Promise<void> => {
  const { store, clock, accounts } = ctx;
  await requireOwnKey(ctx, caller);
  const isSelf = user.id === caller.user_id;
  if (!isSelf && !canResetPassword(caller, user)) throw forbidden("You may not set this user's password.");
  if (user.login_type !== "password") throw invalidField("password", "This user does not sign in with a password.");
  await accounts.passwords.check(password, user);
  if (isSelf) {
    // Without a second factor, the old password is the only possible proof.
    if ((await accounts.factors.listMethods(user.id)).length > 0) await requireProof(ctx, caller);
    const isKnown = await isKnownAddress(ctx, user.email, address);
    const guess = accounts.countGuess({ address, account: user.email, isKnown, isSignedIn: true });
    const isRight = await guess.verify(old_password, user.password_hash);
    if (!isRight) throw invalidField("old_password", "This is not the current password.");
  }
  const password_hash = await accounts.passwords.hash(password);
  const except = isSelf ? caller.key_id : "";
  const now = clock.now();
  await store.commit([
    // Another password may have been set while this one was hashed.
    guardPassword({ id: user.id, password_hash: user.password_hash }),
    // A caller who may do this only to users without roles may not when the user has been given one in the meantime.
    ...(isSelf || isOwner(caller) ? [] : [guardWithoutRoles({ id: user.id })]),
    updateUser(user.id, { password_hash, updated_at: now, ...(isSelf ? {} : { password_reset_at: now }) }),
    markLossesOfUser(user.id, now),
    deleteKeysByUser({ user_id: user.id, except }),
    auditUserChanged(user, { password_hash }, now),
  ]);
  ctx.topics.publish("key_gone", user.id, { except });
};
