// The shares of workspaces as shown in responses. Deleted users and groups are left out.
import type { Store } from "#db/engine/store.ts";
import { listMinimalUsers } from "#db/users/users.ts";
import type { MinimalUser } from "#schema/users/user.ts";
import type { Acl } from "#schema/workspaces/acl.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { findGroupName, type GroupsById, loadGroupsById } from "../groups/acl.ts";

/** Users by ID, in the order of their names. */
export type People = ReadonlyMap<string, MinimalUser>;

const NO_PEOPLE: People = new Map();

/** Returns all users in these lists. */
export const loadPeople = async (store: Pick<Store, "all">, acls: readonly Acl[]): Promise<People> => {
  const ids = new Set(acls.flatMap((acl) => Object.keys(acl)));
  if (ids.size === 0) return NO_PEOPLE;
  const users = await store.all(listMinimalUsers({ ids: JSON.stringify([...ids]) }));
  return new Map(users.map((user) => [user.id, user]));
};

/** Users and groups of shares. */
export type Subjects = { readonly people: People; readonly groups: GroupsById };

type ShareLists = { readonly organization_id: string; readonly user_acl: Acl; readonly group_acl: Acl };

/** Returns all users and groups these workspaces are shared with. */
export const loadSubjects = async (
  store: Pick<Store, "all">,
  workspaces: readonly ShareLists[],
): Promise<Subjects> => ({
  people: await loadPeople(
    store,
    workspaces.map(({ user_acl }) => user_acl),
  ),
  groups: await loadGroupsById(
    store,
    workspaces.flatMap(({ group_acl }) => Object.keys(group_acl)),
  ),
});

/** Lists users by name, then groups. */
export const listSharedWith = (
  { organization_id, user_acl, group_acl }: ShareLists,
  { people, groups }: Subjects,
): Workspace["shared_with"] => {
  const userShares = [...people.values()].flatMap(({ id, username, avatar_url }) => {
    const role = user_acl[id];
    if (role === undefined) return [];
    return [{ id, actor_type: "user" as const, name: username, avatar_url: avatar_url || undefined, roles: [role] }];
  });
  const groupShares = Object.entries(group_acl).flatMap(([id, role]) => {
    const name = findGroupName(groups, organization_id, id);
    if (name === undefined) return [];
    const avatar_url = groups.get(id)?.avatar_url || undefined;
    return [{ id, actor_type: "group" as const, name, avatar_url, roles: [role] }];
  });
  return [...userShares, ...groupShares];
};
