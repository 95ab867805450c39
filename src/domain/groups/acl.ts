// Access lists of resources: validates a request's changes, and presents the groups in a list.
import type { Validation } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { findGroup, type GroupRow, listGroups } from "#db/users/groups.ts";
import type { OrganizationRow } from "#db/users/organizations.ts";
import { EVERYONE } from "#schema/workspaces/acl.ts";

/** ID to new role; an empty string removes it. */
export type RoleChanges<R extends string> = Readonly<Record<string, R | "">>;

/** Returns the requested changes with IDs in lower case; adds invalid IDs and roles to `problems`. */
export const readRoleChanges = <R extends string>(
  field: string,
  input: Readonly<Record<string, string>> = {},
  roles: readonly R[],
  problems: Validation[],
): RoleChanges<R> => {
  const changes: Record<string, R | ""> = {};
  for (const [id, text] of Object.entries(input)) {
    const role = roles.find((known) => known === text) ?? (text === "" ? "" : undefined);
    if (!isUuid(id)) problems.push({ field: `${field}.${id.slice(0, 64)}`, detail: "must be a UUID" });
    else if (role === undefined)
      problems.push({ field: `${field}.${id}`, detail: `must be ${roles.join(", ")} or empty` });
    else changes[id.toLowerCase()] = role;
  }
  return changes;
};

/** Adds IDs to `problems` that should get a role but are not groups of this organization. */
export const checkGroups = async (
  store: Pick<Store, "get">,
  organization_id: string,
  field: string,
  changes: RoleChanges<string>,
  problems: Validation[],
): Promise<void> => {
  for (const [id, role] of Object.entries(changes)) {
    if (role === "" || id === organization_id) continue;
    const group = await store.get(findGroup({ id }));
    if (group?.organization_id === organization_id) continue;
    problems.push({ field: `${field}.${id}`, detail: "is not a group of this organization" });
  }
};

/** Groups by ID, if they have a row: a deleted one has none. */
export type GroupsById = ReadonlyMap<string, GroupRow>;

const NO_GROUPS: GroupsById = new Map();

export const loadGroupsById = async (store: Pick<Store, "all">, ids: readonly string[]): Promise<GroupsById> => {
  if (ids.length === 0) return NO_GROUPS;
  const rows = await store.all(listGroups({ ids: JSON.stringify([...new Set(ids)]) }));
  return new Map(rows.map((row) => [row.id, row]));
};

/** Returns the name of a group in a list; undefined for a deleted one. The group of all members may have no row. */
export const findGroupName = (groups: GroupsById, organization_id: string, id: string): string | undefined =>
  groups.get(id)?.name ?? (id === organization_id ? EVERYONE : undefined);

/** Returns the groups of a list with their roles: the group of all members first, then by name. */
export const presentGroupRoles = async <R extends string>(
  store: Pick<Store, "all">,
  organization: OrganizationRow,
  roles: Readonly<Record<string, R>>,
) => {
  const groups = await loadGroupsById(store, Object.keys(roles));
  return Object.entries(roles)
    .flatMap(([id, role]) => {
      const name = findGroupName(groups, organization.id, id);
      if (name === undefined) return [];
      const { display_name = "", avatar_url = "" } = groups.get(id) ?? {};
      return {
        id,
        name,
        display_name,
        avatar_url,
        organization_id: organization.id,
        organization_name: organization.name,
        organization_display_name: organization.display_name,
        role,
      };
    })
    .sort(
      (a, b) => Number(b.id === organization.id) - Number(a.id === organization.id) || a.name.localeCompare(b.name),
    );
};
