// Finds the group in a path, and presents groups.
import { Type as t } from "@sinclair/typebox";
import { notFound } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import {
  countGroupMembers,
  findGroup,
  findGroupByName,
  type GroupRow,
  listGroupMembers,
  listGroupsByOrganization,
} from "#db/users/groups.ts";
import { countMembers, listMembers } from "#db/users/members.ts";
import { findOrganization, type OrganizationRow } from "#db/users/organizations.ts";
import type { User } from "#db/users/users.ts";
import type { Page } from "#schema/page.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { Group, GroupMember } from "#schema/users/group.ts";
import { EVERYONE } from "#schema/workspaces/acl.ts";
import { canReadMembers, canSeeGroups } from "../access.ts";
import { presentGroupMember } from "../users/present.ts";

/** The path parameter of routes of one group. */
export const groupPath = t.Object({ group: t.String({ format: "uuid", description: "The ID of the group." }) });

/** A group with its organization. */
export type FoundGroup = { readonly group: GroupRow; readonly organization: OrganizationRow };

export const isEveryone = (group: Pick<GroupRow, "id" | "organization_id">): boolean =>
  group.id === group.organization_id;

/** Returns the group of all members while it has no row. */
const makeEveryoneGroup = ({ id, created_at }: OrganizationRow): GroupRow => ({
  id,
  organization_id: id,
  name: EVERYONE,
  display_name: "",
  avatar_url: "",
  quota_allowance: 0,
  created_at,
  updated_at: created_at,
});

/** Rejects with 404 when it does not exist or the caller cannot see its organization. */
export const findGroupFor = async (store: Store, id: string, caller: UserCaller): Promise<FoundGroup> => {
  const row = await store.get(findGroup({ id: id.toLowerCase() }));
  const organization = await store.get(findOrganization({ id: row?.organization_id ?? id.toLowerCase() }));
  if (!organization || !canSeeGroups(caller, organization.id)) throw notFound();
  return { group: row ?? makeEveryoneGroup(organization), organization };
};

/** Finds a group by ID or name in an organization the caller can see. Rejects with 404. */
export const findNamedGroup = async (
  store: Store,
  organization: OrganizationRow,
  named: string,
  caller: UserCaller,
): Promise<FoundGroup> => {
  const row = await store.get(findGroupByName({ organization_id: organization.id, name: named }));
  if (row) return { group: row, organization };
  if (named.toLowerCase() === EVERYONE.toLowerCase()) return findGroupFor(store, organization.id, caller);
  const found = isUuid(named) ? await findGroupFor(store, named, caller) : undefined;
  if (found?.organization.id !== organization.id) throw notFound();
  return found;
};

/** Returns the groups of an organization: the group of all members, then the others by name. */
export const listGroups = async (store: Store, organization: OrganizationRow): Promise<GroupRow[]> => {
  const rows = await store.all(listGroupsByOrganization({ organization_id: organization.id }));
  const everyone = rows.find(isEveryone) ?? makeEveryoneGroup(organization);
  return [everyone, ...rows.filter((row) => !isEveryone(row))];
};

const MAX_MEMBERS = 1000;

/** Presents a group as the caller can see it. */
export const presentGroup = async (
  store: Store,
  { group, organization }: FoundGroup,
  caller: UserCaller,
): Promise<Group> => {
  const { users, count } = await loadMembersPage(store, group, caller, { limit: MAX_MEMBERS, offset: 0 });
  return {
    id: group.id,
    name: group.name,
    display_name: group.display_name,
    organization_id: organization.id,
    organization_name: organization.name,
    organization_display_name: organization.display_name,
    members: users,
    total_member_count: count,
    avatar_url: group.avatar_url,
    quota_allowance: group.quota_allowance,
    source: "user",
  };
};

/** Returns a page of its members by username, and their total. Callers who cannot read members see only themselves. */
export const loadMembersPage = async (
  store: Store,
  group: GroupRow,
  caller: UserCaller,
  { limit, offset }: Page,
): Promise<{ users: GroupMember[]; count: number }> => {
  const everyone = isEveryone(group);
  const filter = { organization_id: group.organization_id, group_id: group.id };
  const [counted] = await store.scan(everyone ? countMembers(filter) : countGroupMembers(filter));
  const seesAll = canReadMembers(caller, group.organization_id);
  const page = seesAll ? { limit, offset } : { limit: 10_000, offset: 0 };
  const rows: { user: User }[] = await store.scan(
    everyone ? listMembers({ ...filter, ...page }) : listGroupMembers({ ...filter, ...page }),
  );
  const shown = seesAll ? rows : rows.filter(({ user }) => user.id === caller.user_id);
  return { users: shown.map(({ user }) => presentGroupMember(user)), count: counted?.count ?? 0 };
};
