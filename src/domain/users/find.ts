// Finding the user that a path names, for a caller who may see them.
import { Type as t } from "@sinclair/typebox";
import { notFound } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { readMemberships } from "#db/users/members.ts";
import { findUser, findUserByName, type User as UserRow } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { maySeeUser, type UserTarget } from "../access.ts";

/** The path parameter of every route of one user. */
export const userPath = t.Object({ user: t.String({ description: "User id, username or `me`." }) });

/** A user with the organizations they are a member of. */
export type KnownUser = UserRow & UserTarget;

/**
 * The user named by a path: `me`, a UUID or a username in any letter case. 404 when none exists. For routes that show something
 * of the user and check that themselves, such as a shared workspace; everyone else takes `userAt`.
 */
export const anyUserAt = async (store: Store, text: string, caller: UserCaller): Promise<UserRow> => {
  const id = text === "me" ? caller.user_id : isUuid(text) ? text.toLowerCase() : undefined;
  const user = await store.get(id ? findUser({ id }) : findUserByName({ username: text }));
  if (!user) throw notFound();
  return user;
};

/** The user named by a path (`me`, UUID or username). 404 when none exists or the caller may not see them. */
export const userAt = async (store: Store, text: string, caller: UserCaller): Promise<KnownUser> => {
  const user = await withOrganizations(store, await anyUserAt(store, text, caller));
  if (!maySeeUser(caller, user)) throw notFound();
  return user;
};

const withOrganizations = async (store: Store, user: UserRow): Promise<KnownUser> => {
  const { organizations } = await readMemberships(store, user.id);
  return { ...user, organizations };
};
