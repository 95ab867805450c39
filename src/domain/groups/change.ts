// Creates, changes and deletes groups and their members. New and removed members get their new access immediately (rules GR-1 to GR-6).
import { forbidden, invalid, invalidField } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { type AuditedChange, insertAudit } from "#db/reports/audit/audit.ts";
import {
  addToGroup,
  deleteGroup,
  findGroup,
  type GroupRow,
  insertGroup,
  listGroupMemberIds,
  removeFromGroup,
  updateGroup,
} from "#db/users/groups.ts";
import type { OrganizationRow } from "#db/users/organizations.ts";
import { guardUser } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { CreateGroup, PatchGroup } from "#schema/users/group.ts";
import { EVERYONE } from "#schema/workspaces/acl.ts";
import { canManageGroups } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { loadAnyUser } from "../users/find.ts";
import { toTakenConflict } from "../users/name-conflicts.ts";
import { type FoundGroup, isEveryone } from "./find.ts";

const NAMES = { groups_name: "name" };

/** Rejects with 400 for a reserved name, with 403, and with 409 for a name that is taken. */
export const createGroup = async (
  { store, clock }: DomainContext,
  organization: OrganizationRow,
  caller: UserCaller,
  { name, display_name = "", avatar_url = "", quota_allowance = 0 }: CreateGroup,
): Promise<FoundGroup> => {
  if (!canManageGroups(caller, organization.id)) throw forbidden("You may not create groups in this organization.");
  checkName(name);
  const now = clock.now();
  const group: GroupRow = {
    id: uuid(),
    organization_id: organization.id,
    name,
    display_name,
    avatar_url,
    quota_allowance,
    created_at: now,
    updated_at: now,
  };
  await store
    .commit([insertGroup(group), writeAuditEntry(group, { action: "create", after: group, now })])
    .catch((error) => Promise.reject(toTakenConflict(error, NAMES)));
  return { group, organization };
};

/**
 * Omitted members are unchanged. Rejects with 400 for users outside the organization and invalid changes of the group of all members, and
 * with 403 or 409.
 */
export const changeGroup = async (
  ctx: DomainContext,
  { group, organization }: FoundGroup,
  caller: UserCaller,
  input: PatchGroup,
): Promise<FoundGroup> => {
  if (!canManageGroups(caller, organization.id)) throw forbidden("You may not change the groups of this organization.");
  const { add_users = [], remove_users = [] } = input;
  const isAll = isEveryone(group);
  if (isAll && add_users.length + remove_users.length > 0) {
    throw invalid("All members of the organization are in this group: add or remove members instead.");
  }
  if (isAll && input.name && input.name !== group.name) throw invalidField("name", "this group cannot be renamed");
  if (!isAll && input.name) checkName(input.name);
  const added = await findIds(ctx, "add_users", add_users, caller);
  const removed = await findIds(ctx, "remove_users", remove_users, caller);
  const duplicate = added.find((id) => removed.includes(id));
  if (duplicate !== undefined) throw invalidField("remove_users", "names a user who is also in add_users");
  const now = ctx.clock.now();
  const next: GroupRow = {
    ...group,
    name: input.name || group.name,
    display_name: input.display_name ?? group.display_name,
    avatar_url: input.avatar_url ?? group.avatar_url,
    quota_allowance: input.quota_allowance ?? group.quota_allowance,
    updated_at: now,
  };
  await ctx.store
    .commit([
      ...(await writeGroup(ctx, group, next)),
      ...added.map((id) => guardUser({ id })),
      ...addToGroup(added.map((user_id) => ({ group_id: group.id, organization_id: organization.id, user_id }))),
      ...removeFromGroup(group.id, removed, now),
      writeAuditEntry(group, { action: "write", ...(await describeChange(ctx, group, next, added, removed)), now }),
    ])
    .catch((error) => {
      if (error instanceof CommitError && error.reason === "stale") {
        throw invalidField(
          "add_users",
          "names a user who is not a member of the organization, or the group was deleted",
        );
      }
      throw toTakenConflict(error, NAMES);
    });
  for (const user_id of [...added, ...removed]) ctx.topics.publish("access_changed", user_id, {});
  if (next.name !== group.name) ctx.topics.publish("shown_changed", group.id, {});
  return { group: next, organization };
};

/** Deletes the group, whose members lose what was shared with it. Rejects with 400 for the group of all members, and with 403. */
export const removeGroup = async (
  ctx: DomainContext,
  { group, organization }: FoundGroup,
  caller: UserCaller,
): Promise<void> => {
  if (!canManageGroups(caller, organization.id)) throw forbidden("You may not delete the groups of this organization.");
  if (isEveryone(group)) throw invalid("The group of all members cannot be deleted.");
  const members = await ctx.store.scan(listGroupMemberIds({ group_id: group.id }));
  const now = ctx.clock.now();
  await ctx.store.commit([
    ...deleteGroup(group.id, now),
    writeAuditEntry(group, { action: "delete", before: group, now }),
  ]);
  for (const { user_id } of members) ctx.topics.publish("access_changed", user_id, {});
};

/** The group of all members gets a row with its first change. */
const writeGroup = async ({ store }: DomainContext, group: GroupRow, next: GroupRow): Promise<Statement[]> => {
  const hasRow = !isEveryone(group) || (await store.get(findGroup({ id: group.id }))) !== undefined;
  if (!hasRow) return [insertGroup(next)];
  const { name, display_name, avatar_url, quota_allowance, updated_at } = next;
  return [updateGroup(group.id, { name, display_name, avatar_url, quota_allowance, updated_at }, { expect: 1 })];
};

const checkName = (name: string): void => {
  if (name.toLowerCase() === EVERYONE.toLowerCase()) throw invalidField("name", "This name is reserved.");
};

const findIds = async (
  { store }: DomainContext,
  field: string,
  named: readonly string[],
  caller: UserCaller,
): Promise<string[]> => {
  const ids: string[] = [];
  for (const [index, text] of named.entries()) {
    const user = await loadAnyUser(store, text, caller).catch(() => undefined);
    if (!user) throw invalidField(`${field}[${index}]`, "is not a user");
    ids.push(user.id);
  }
  return [...new Set(ids)];
};

/** Lists members by ID, and only when they change. */
const describeChange = async (
  { store }: DomainContext,
  before: GroupRow,
  after: GroupRow,
  added: readonly string[],
  removed: readonly string[],
): Promise<{ before: object; after: object }> => {
  if (added.length + removed.length === 0) return { before, after };
  const rows = await store.scan(listGroupMemberIds({ group_id: before.id }));
  const members = rows.map(({ user_id }) => user_id).sort();
  const next = [...new Set([...members, ...added])].filter((id) => !removed.includes(id)).sort();
  return { before: { ...before, members }, after: { ...after, members: next } };
};

const writeAuditEntry = ({ id, name, avatar_url, organization_id }: GroupRow, change: AuditedChange) =>
  insertAudit({
    ...change,
    resource_type: "group",
    resource_id: id,
    organization_id,
    target: name,
    icon: avatar_url,
  });
