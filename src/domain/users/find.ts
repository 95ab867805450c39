// Finds the user in a path and checks the caller's access.
import { Type as t } from "@sinclair/typebox";
import { notFound } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { readMemberships } from "#db/users/members.ts";
import { findUser, findUserByName, type User as UserRow } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canSeeUser, type UserTarget } from "../access.ts";

/** The path parameter of routes of one user. */
export const userPath = t.Object({ user: t.String({ description: "The user's ID, username or `me`." }) });

/** A user with their organizations. */
export type KnownUser = UserRow & UserTarget;

/**
 * Returns the user in a path: `me`, a UUID or a username in any letter case. Rejects with 404 when none exists. For routes that check
 * access themselves, such as for a shared workspace; all others use `findUserInPath`.
 */
export const loadAnyUser = async (store: Store, text: string, caller: UserCaller): Promise<UserRow> => {
  const id = text === "me" ? caller.user_id : isUuid(text) ? text.toLowerCase() : undefined;
  const user = await store.get(id ? findUser({ id }) : findUserByName({ username: text }));
  if (!user) throw notFound();
  return user;
};

/** Returns the user in a path (`me`, UUID or username). Rejects with 404 when none exists or the caller cannot see them. */
export const findUserInPath = async (store: Store, text: string, caller: UserCaller): Promise<KnownUser> => {
  const user = await withOrganizations(store, await loadAnyUser(store, text, caller));
  if (!canSeeUser(caller, user)) throw notFound();
  return user;
};

const withOrganizations = async (store: Store, user: UserRow): Promise<KnownUser> => {
  const { organizations } = await readMemberships(store, user.id);
  return { ...user, organizations };
};
