// Finding the user a path names, and showing users.
import { Type as t } from "@sinclair/typebox";
import { rfc3339, rfc3339OrAbsent } from "#base/clock.ts";
import { notFound } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { readMemberships } from "#db/users/members.ts";
import { findUser, findUserByName, type User as UserRow } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { GroupMember } from "#schema/users/group.ts";
import type { RoleName, User } from "#schema/users/user.ts";
import { maySeeUser, type UserTarget } from "../access.ts";

/** The path parameter of every route of one user. */
export const userPath = t.Object({ user: t.String({ description: "User id, username or `me`." }) });

/** A user with the organizations they are a member of. */
export type KnownUser = UserRow & UserTarget;

/**
 * The user named by a path: `me`, a UUID or a username in any letter case. 404 when there is none. For routes that show something
 * of the user and check that themselves, such as a shared workspace; everybody else takes `userAt`.
 */
export const anyUserAt = async (store: Store, text: string, caller: UserCaller): Promise<UserRow> => {
  const id = text === "me" ? caller.user_id : isUuid(text) ? text.toLowerCase() : undefined;
  const user = await store.get(id ? findUser({ id }) : findUserByName({ username: text }));
  if (!user) throw notFound();
  return user;
};

/** The user named by a path (`me`, UUID or username). 404 when there is none or the caller may not see them. */
export const userAt = async (store: Store, text: string, caller: UserCaller): Promise<KnownUser> => {
  const user = await withOrganizations(store, await anyUserAt(store, text, caller));
  if (!maySeeUser(caller, user)) throw notFound();
  return user;
};

const withOrganizations = async (store: Store, user: UserRow): Promise<KnownUser> => {
  const { organizations } = await readMemberships(store, user.id);
  return { ...user, organizations };
};

const ROLE_WORDS: Record<string, string> = {
  "organization-workspace-creation-ban": "Organization Workspace Creation Ban",
};

/** A role as callers see it; without `organization` it is one of the whole site. */
export const presentRole = (name: string, organization?: string): RoleName => ({
  name,
  display_name: ROLE_WORDS[name] ?? name.replaceAll("-", " ").replace(/\b[a-z]/g, (letter) => letter.toUpperCase()),
  ...(organization === undefined ? {} : { organization_id: organization }),
});

/** A user as a member of a group: without roles and organizations. */
export const presentGroupMember = (user: UserRow): GroupMember => ({
  id: user.id,
  username: user.username,
  name: user.name,
  email: user.email,
  avatar_url: user.avatar_url,
  theme_preference: user.theme_preference,
  login_type: user.login_type,
  status: user.status,
  created_at: rfc3339(user.created_at),
  updated_at: rfc3339(user.updated_at),
  last_seen_at: rfc3339OrAbsent(user.last_seen_at),
  is_service_account: user.login_type === "none",
});

/** The user as callers see them. */
export const presentUser = (user: UserRow, organizations: readonly string[]): User => ({
  ...presentGroupMember(user),
  has_ai_seat: user.has_ai_seat,
  organization_ids: [...organizations].sort(),
  roles: user.roles.map((role) => presentRole(role)),
});

/** The same for a user whose organizations are known. */
export const presentKnownUser = (user: KnownUser): User => presentUser(user, Object.keys(user.organizations));
