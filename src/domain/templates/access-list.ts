// The access list of a template: its users and groups, and changes to them (rules TA-1 to TA-6).
import { conflict, forbidden, invalid, type Validation } from "#base/errors.ts";
import { CommitError } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { setTemplateAccess, type TemplateRow } from "#db/templates/templates.ts";
import { findMemberWithUser, listMembers } from "#db/users/members.ts";
import { listUsersByIds, type User as UserRow } from "#db/users/users.ts";
import type { PatchTemplateAcl, TemplateAcl, TemplateAclAvailable } from "#schema/templates/template-acl.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { type Acl, WORKSPACE_ROLES, type WorkspaceRole } from "#schema/workspaces/acl.ts";
import { canManageTemplate, canReadMembers } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { checkGroups, type RoleChanges, readRoleChanges } from "../groups/acl.ts";
import { listGroups, presentGroup } from "../groups/find.ts";
import { getOrganization } from "../organizations/find.ts";
import { presentUser } from "../users/present.ts";

const MAX_ACL_ENTRIES = 500;
/** Maximum attempts while others change the list; each one reads it again. */
const MAX_TRIES = 5;

/** Returns the effective group list: until it is set, all members of the organization can use the template. */
export const getGroupAcl = ({ organization_id, group_acl }: TemplateRow): Acl =>
  group_acl ?? { [organization_id]: "use" };

/** Rejects with 403 for callers who cannot change it. */
export const checkCanManage = (template: TemplateRow, caller: UserCaller): void => {
  if (!canManageTemplate(caller, template))
    throw forbidden("Only administrators of the template can see who has access to it.");
};

/** Returns users by username, then groups. Deleted ones are left out. */
export const presentAccess = async (
  ctx: DomainContext,
  template: TemplateRow,
  caller: UserCaller,
): Promise<TemplateAcl> => {
  const { store } = ctx;
  const organization = await getOrganization(store, template.organization_id);
  const users = await store.all(listUsersByIds({ ids: JSON.stringify(Object.keys(template.user_acl)) }));
  const roles = getGroupAcl(template);
  const groups = (await listGroups(store, organization)).filter(({ id }) => id in roles);
  return {
    users: users.map((user) => ({
      ...presentForOrganization(user, organization.id),
      role: template.user_acl[user.id] as WorkspaceRole,
    })),
    group: await Promise.all(
      groups.map(async (group) => ({
        ...(await presentGroup(store, { group, organization }, caller)),
        role: roles[group.id] as WorkspaceRole,
      })),
    ),
  };
};

const MAX_AVAILABLE = 1000;

/** Returns members and groups of the template's organization that the caller can see. */
export const presentAvailable = async (
  { store }: DomainContext,
  template: TemplateRow,
  caller: UserCaller,
): Promise<TemplateAclAvailable> => {
  const organization = await getOrganization(store, template.organization_id);
  const members = canReadMembers(caller, organization.id)
    ? await store.scan(listMembers({ organization_id: organization.id, limit: MAX_AVAILABLE, offset: 0 }))
    : [];
  return {
    users: members.map(({ user }) => presentForOrganization(user, organization.id)),
    groups: await Promise.all(
      (await listGroups(store, organization)).map((group) => presentGroup(store, { group, organization }, caller)),
    ),
  };
};

/** Shows only the template's organization of each user. */
const presentForOrganization = (user: UserRow, organization_id: string) => presentUser(user, [organization_id]);

/** Rejects with 400 for users outside the organization and unknown groups and roles; nothing is changed then. */
export const changeAccess = async (
  ctx: DomainContext,
  found: TemplateRow,
  caller: UserCaller,
  body: PatchTemplateAcl,
  reload: () => Promise<TemplateRow>,
): Promise<void> => {
  const problems: Validation[] = [];
  const user_perms = readRoleChanges("user_perms", body.user_perms, WORKSPACE_ROLES, problems);
  const group_perms = readRoleChanges("group_perms", body.group_perms, WORKSPACE_ROLES, problems);
  await checkUsers(ctx, found, user_perms, problems);
  await checkGroups(ctx.store, found.organization_id, "group_perms", group_perms, problems);
  if (problems.length > 0) throw invalid("Validation failed.", problems);
  for (let template = found, triesLeft = MAX_TRIES; ; template = await reload(), triesLeft -= 1) {
    checkCanManage(template, caller);
    const written = await tryChange(ctx, template, user_perms, group_perms);
    if (written) return;
    if (triesLeft <= 1) throw conflict("The list is being changed by others. Please retry.");
  }
};

const tryChange = async (
  { store, clock, topics }: DomainContext,
  template: TemplateRow,
  user_perms: RoleChanges<WorkspaceRole>,
  group_perms: RoleChanges<WorkspaceRole>,
): Promise<boolean> => {
  const before = { user_acl: template.user_acl, group_acl: getGroupAcl(template) };
  const after = { user_acl: mergeAcl(before.user_acl, user_perms), group_acl: mergeAcl(before.group_acl, group_perms) };
  if (Object.keys(after.user_acl).length + Object.keys(after.group_acl).length > MAX_ACL_ENTRIES) {
    throw invalid(`A template can be given to at most ${MAX_ACL_ENTRIES} users and groups.`);
  }
  const now = clock.now();
  const entry = insertAudit({
    now,
    action: "write",
    resource_type: "template",
    resource_id: template.id,
    target: template.name,
    icon: template.icon,
    organization_id: template.organization_id,
    before,
    after,
  });
  try {
    await store.commit([setTemplateAccess(template, { ...after, updated_at: now }), entry]);
  } catch (error) {
    if (error instanceof CommitError && error.reason === "stale") return false;
    throw error;
  }
  topics.publish("shown_changed", template.id, {});
  return true;
};

const mergeAcl = (acl: Acl, changes: RoleChanges<WorkspaceRole>): Acl => {
  const next = { ...acl, ...changes };
  return Object.fromEntries(Object.entries(next).filter((entry): entry is [string, WorkspaceRole] => entry[1] !== ""));
};

const checkUsers = async (
  { store }: DomainContext,
  { organization_id }: TemplateRow,
  changes: RoleChanges<WorkspaceRole>,
  problems: Validation[],
): Promise<void> => {
  for (const [user_id, role] of Object.entries(changes)) {
    if (role === "" || (await store.get(findMemberWithUser({ organization_id, user_id })))) continue;
    problems.push({ field: `user_perms.${user_id}`, detail: "is not a member of the template's organization" });
  }
};
