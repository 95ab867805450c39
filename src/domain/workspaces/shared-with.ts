// With whom workspaces are shared, as their answers show it. A user who is gone is left out.
import type { Store } from "#db/engine/store.ts";
import { listMinimalUsers } from "#db/users/users.ts";
import type { MinimalUser } from "#schema/users/user.ts";
import { type Acl, EVERYONE } from "#schema/workspaces/acl.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";

/** Users by id, in the order of their names. */
export type People = ReadonlyMap<string, MinimalUser>;

const NOBODY: People = new Map();

/** Everybody whom one of these lists names. */
export const peopleOf = async (store: Pick<Store, "all">, acls: readonly Acl[]): Promise<People> => {
  const ids = new Set(acls.flatMap((acl) => Object.keys(acl)));
  if (ids.size === 0) return NOBODY;
  const users = await store.all(listMinimalUsers({ ids: JSON.stringify([...ids]) }));
  return new Map(users.map((user) => [user.id, user]));
};

/** Users by name, then the group of everybody. */
export const sharedWith = (
  { user_acl, group_acl }: { readonly user_acl: Acl; readonly group_acl: Acl },
  people: People,
): Workspace["shared_with"] => {
  const users = [...people.values()].flatMap(({ id, username, avatar_url }) => {
    const role = user_acl[id];
    if (role === undefined) return [];
    return [{ id, actor_type: "user" as const, name: username, avatar_url: avatar_url || undefined, roles: [role] }];
  });
  const groups = Object.entries(group_acl).map(([id, role]) => ({
    id,
    actor_type: "group" as const,
    name: EVERYONE,
    roles: [role],
  }));
  return [...users, ...groups];
};
