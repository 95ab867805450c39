// Changes to a user: rename, roles, suspend, activate, delete. Open connections of a suspended or deleted user end immediately (rules
// ID-11, ID-12).
import { conflict, forbidden, invalid } from "#base/errors.ts";
import { CommitError } from "#db/engine/store.ts";
import { setTimersOfOwner } from "#db/engine/timers.ts";
import { deleteRowsOf } from "#db/removal.ts";
import { deleteKeysByUser } from "#db/users/api-keys.ts";
import { holdUsername } from "#db/users/former-usernames.ts";
import { deleteUser, guardOwner, updateUser } from "#db/users/users.ts";
import { markLossesOfRoles, markLossesOfUser } from "#db/workspaces/sharing.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canEditProfile, canGiveSiteRoles, canManageUser, isOwner } from "../access.ts";
import { stopForbiddenLocal } from "../builds/local-limits.ts";
import type { DomainContext } from "../context.ts";
import { requireOwnKey } from "../factors/proof.ts";
import { auditUserChanged, auditUserDeleted } from "./audit.ts";
import { findUserInPath, type KnownUser } from "./find.ts";
import { PREBUILDS_USER_ID } from "./first-user.ts";
import { requireNotHeld } from "./free-username.ts";
import { endKeysCreatedBy } from "./keys-change.ts";
import { toTakenConflict, USER_UNIQUE_FIELDS } from "./name-conflicts.ts";
import { checkSiteRoles } from "./site-roles.ts";
import { checkUsername } from "./usernames.ts";

/** Returns the user if the caller can manage them. The built-in account cannot be managed. Rejects with 403 or 404. */
export const findManagedUser = async (ctx: DomainContext, text: string, caller: UserCaller): Promise<KnownUser> => {
  const user = await findUserInPath(ctx.store, text, caller);
  if (!canManageUser(caller, user) || user.id === PREBUILDS_USER_ID) throw forbidden("You may not manage this user.");
  return user;
};

/** Deletes a user. Rejects with 409 while the user owns workspaces. */
export const removeUser = async (ctx: DomainContext, user: KnownUser, caller: UserCaller): Promise<void> => {
  if (user.id === caller.user_id) throw forbidden("You cannot delete yourself.");
  const now = ctx.clock.now();
  await ctx.store
    .commit([
      ...(isOwner(caller) ? [guardOwner({ id: caller.user_id })] : []),
      deleteUser({ id: user.id, now }),
      markLossesOfUser(user.id, now),
      ...deleteRowsOf("user", user.id),
      ...holdUsername(user, now),
      auditUserDeleted(user, now),
    ])
    .catch((error) => {
      if (!(error instanceof CommitError) || error.reason !== "stale") throw error;
      throw conflict("The user still owns workspaces. Delete those first.");
    });
  ctx.topics.publish("key_gone", user.id, {});
  ctx.topics.publish("shown_changed", user.id, {});
  await endKeysCreatedBy(ctx, user.id);
};

/** Rejects with 400, 403, or 409 for a name that is taken. */
export const changeProfile = async (
  ctx: DomainContext,
  user: KnownUser,
  caller: UserCaller,
  input: { readonly username: string; readonly name?: string | undefined },
): Promise<KnownUser> => {
  if (!canEditProfile(caller, user) || user.id === PREBUILDS_USER_ID) throw forbidden();
  const { username } = input;
  const isRenamed = username.toLowerCase() !== user.username.toLowerCase();
  if (isRenamed) checkUsername(username);
  if (isRenamed && !canManageUser(caller, user)) await requireNotHeld(ctx, username, user.id);
  const now = ctx.clock.now();
  const name = input.name?.trim() ?? user.name;
  await ctx.store
    .commit([
      updateUser(user.id, { username, name, updated_at: now }),
      ...(isRenamed ? holdUsername(user, now) : []),
      auditUserChanged(user, { username, name }, now),
    ])
    .catch((error) => Promise.reject(toTakenConflict(error, USER_UNIQUE_FIELDS)));
  ctx.topics.publish("shown_changed", user.id, {});
  return findUserInPath(ctx.store, user.id, caller);
};

/**
 * Suspending revokes all keys of the user, and with them the grants and pending codes of applications, so that none works again after
 * `activate`. Does nothing when the user already has that status. Rejects with 400 for oneself and for owners.
 */
export const setSuspended = async (
  ctx: DomainContext,
  user: KnownUser,
  caller: UserCaller,
  isSuspended: boolean,
): Promise<KnownUser> => {
  if (isSuspended && user.id === caller.user_id) throw invalid("You cannot suspend yourself.");
  if (isSuspended && user.roles.includes("owner")) {
    throw invalid("An owner cannot be suspended. Remove the role owner first.");
  }
  const now = ctx.clock.now();
  const status = isSuspended ? "suspended" : "active";
  // No change, so no audit entry.
  if (user.status === status) return user;
  await ctx.store.commit([
    updateUser(user.id, { status, updated_at: now }),
    ...(isSuspended ? [deleteKeysByUser({ user_id: user.id, except: "" }), markLossesOfUser(user.id, now)] : []),
    // The workspaces of a suspended user stop (rule TI-16).
    setTimersOfOwner(user.id, "schedule", now),
    auditUserChanged(user, { status }, now),
  ]);
  if (isSuspended) {
    ctx.topics.publish("key_gone", user.id, {});
    await endKeysCreatedBy(ctx, user.id);
  }
  return findUserInPath(ctx.store, user.id, caller);
};

/** Replaces all site roles. Only an owner can assign them, and never to themselves (rule ID-11). */
export const setSiteRoles = async (
  ctx: DomainContext,
  user: KnownUser,
  caller: UserCaller,
  names: readonly string[],
): Promise<KnownUser> => {
  if (!canGiveSiteRoles(caller) || user.id === PREBUILDS_USER_ID) throw forbidden("Only an owner may give site roles.");
  if (user.id === caller.user_id) throw invalid("You cannot change your own roles.");
  await requireOwnKey(ctx, caller, "give roles");
  const now = ctx.clock.now();
  const roles = checkSiteRoles(names);
  await ctx.store.commit([
    guardOwner({ id: caller.user_id }),
    ...markLossesOfRoles(user, roles, now),
    updateUser(user.id, { roles, updated_at: now }),
    auditUserChanged(user, { roles }, now),
  ]);
  ctx.topics.publish("access_changed", user.id, {});
  if (!roles.includes("owner")) await endKeysCreatedBy(ctx, user.id);
  await stopForbiddenLocal(ctx, { owner_id: user.id });
  return findUserInPath(ctx.store, user.id, caller);
};
