// Administration of a user's second factors: require one, and remove all for a user who has lost them.
import { conflict, forbidden, invalid } from "#base/errors.ts";
import { deleteFactorsByUser } from "#db/second-factors.ts";
import { guardKey } from "#db/users/api-keys.ts";
import { guardWithoutRoles, updateUser } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canManageUser, canResetPassword, isOwner } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { auditUserChanged } from "../users/audit.ts";
import type { KnownUser } from "../users/find.ts";
import { PREBUILDS_USER_ID } from "../users/first-user.ts";
import { requireOwnKey, requireProof } from "./proof.ts";

/** Returns the updated user. Rejects with 400 or 403. */
export const requireFactor = async (
  ctx: DomainContext,
  user: KnownUser,
  caller: UserCaller,
  required: boolean,
): Promise<KnownUser> => {
  if (!canManageUser(caller, user) || user.id === PREBUILDS_USER_ID) throw forbidden("You may not manage this user.");
  if (user.id === caller.user_id)
    throw invalid("You can require a second factor only of others. Set one up for yourself instead.");
  // Lifting it makes the account easier to enter, as a new password does.
  if (!required && !canResetPassword(caller, user))
    throw forbidden("Only an owner can lift this requirement for a user with roles.");
  if (user.login_type !== "password") throw invalid("This user does not sign in with a password.");
  await requireOwnKey(ctx, caller);
  const patch = { second_factor_required: required };
  if (user.second_factor_required !== required) {
    const now = ctx.clock.now();
    await ctx.store.commit([updateUser(user.id, { ...patch, updated_at: now }), auditUserChanged(user, patch, now)]);
    // Open connections end; the next request tells the user to enroll.
    const isMissing = (await ctx.accounts.factors.listMethods(user.id)).length === 0;
    if (required && isMissing) ctx.topics.publish("key_gone", user.id, {});
  }
  return { ...user, ...patch };
};

/** Removes the second factors of a user who has lost them. Rejects with 403, or 409 when none exist. */
export const resetFactors = async (ctx: DomainContext, user: KnownUser, caller: UserCaller): Promise<void> => {
  const { factors } = ctx.accounts;
  if (!canResetPassword(caller, user) || user.id === PREBUILDS_USER_ID) {
    throw forbidden("You may not reset this user's second factors.");
  }
  if (user.id === caller.user_id) {
    throw forbidden("You can reset only the second factors of others. Remove your own with your password and a code.");
  }
  await requireProof(ctx, caller);
  if ((await factors.listMethods(user.id)).length === 0) throw conflict("This user has no second factor.");
  await ctx.store.commit([
    guardKey({ id: caller.key_id, now: ctx.clock.now() }),
    ...(isOwner(caller) ? [] : [guardWithoutRoles({ id: user.id })]),
    ...deleteFactorsByUser(user.id),
    factors.audited(user, { action: "delete", before: { kind: "all" }, additional: { reset: "by another" } }),
  ]);
};
