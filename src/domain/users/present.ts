// Presents users.
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import type { User as UserRow } from "#db/users/users.ts";
import type { GroupMember } from "#schema/users/group.ts";
import type { RoleName, User } from "#schema/users/user.ts";
import type { KnownUser } from "./find.ts";

const ROLE_WORDS: Record<string, string> = {
  "organization-workspace-creation-ban": "Organization Workspace Creation Ban",
};

/** Presents a role; without `organization`, it is a site role. */
export const presentRole = (name: string, organization?: string): RoleName => ({
  name,
  display_name: ROLE_WORDS[name] ?? name.replaceAll("-", " ").replace(/\b[a-z]/g, (letter) => letter.toUpperCase()),
  ...(organization === undefined ? {} : { organization_id: organization }),
});

/** Presents a user as a member of a group, without roles and organizations. */
export const presentGroupMember = (user: UserRow): GroupMember => ({
  id: user.id,
  username: user.username,
  name: user.name,
  email: user.email,
  avatar_url: user.avatar_url,
  theme_preference: user.theme_preference,
  login_type: user.login_type,
  status: user.status,
  created_at: toRfc3339(user.created_at),
  updated_at: toRfc3339(user.updated_at),
  last_seen_at: toOptionalRfc3339(user.last_seen_at),
  is_service_account: user.login_type === "none",
});

/** Presents a user. */
export const presentUser = (user: UserRow, organizations: readonly string[]): User => ({
  ...presentGroupMember(user),
  has_ai_seat: user.has_ai_seat,
  organization_ids: [...organizations].sort(),
  roles: user.roles.map((role) => presentRole(role)),
});

/** Presents a user whose organizations are known. */
export const presentKnownUser = (user: KnownUser): User => presentUser(user, Object.keys(user.organizations));
