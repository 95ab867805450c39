// Access rules: pure functions of the caller and the resource (facts/platform 3.8). All access checks go through these functions. An
// invisible resource is a 404, a visible but forbidden one a 403.
import { forbidden } from "#base/errors.ts";
import type { BudgetScope } from "#schema/ai/budget.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { Acl, WorkspaceRole } from "#schema/workspaces/acl.ts";

export const isOwner = (caller: UserCaller): boolean => caller.roles.includes("owner");

const hasSiteRole = (caller: UserCaller, ...roles: string[]): boolean =>
  roles.some((role) => caller.roles.includes(role));

/** Returns whether the caller is a site owner or has one of these roles in the organization. */
const hasOrganizationRole = (caller: UserCaller, organization: string, ...roles: string[]): boolean =>
  isOwner(caller) || (caller.organizations[organization]?.some((role) => roles.includes(role)) ?? false);

const isMember = (caller: UserCaller, organization: string): boolean => organization in caller.organizations;

// Organizations and their members.

/**
 * Returns whether a person may start workspaces, use models and spend in an organization, which requires membership. Viewing, stopping and
 * deleting their own resources does not.
 */
export const canWorkIn = (person: Pick<UserCaller, "organizations">, organization: string): boolean =>
  organization in person.organizations;

/** Members see their organizations; site-wide readers see all of them. */
export const canSeeOrganization = (caller: UserCaller, organization: string): boolean =>
  isMember(caller, organization) || hasSiteRole(caller, "owner", "auditor", "user-admin", "template-admin");

/** Only site owners create and delete organizations. */
export const canCreateOrganizations = (caller: UserCaller): boolean => isOwner(caller);

export const canUpdateOrganization = (caller: UserCaller, organization: string): boolean =>
  hasOrganizationRole(caller, organization, "organization-admin");

/** Allows reading the whole list of members; everyone else sees only their own entry. */
export const canReadMembers = (caller: UserCaller, organization: string): boolean =>
  canReadAllUsers(caller) || hasOrganizationRole(caller, organization, ...MEMBER_READERS);

const MEMBER_READERS = ["organization-admin", "organization-user-admin", "organization-auditor"];

/** Allows adding and removing members. */
export const canManageMembers = (caller: UserCaller, organization: string): boolean =>
  hasSiteRole(caller, "user-admin") ||
  hasOrganizationRole(caller, organization, "organization-admin", "organization-user-admin");

/** Allows assigning and removing roles in an organization. */
export const canGiveOrganizationRoles = (caller: UserCaller, organization: string): boolean =>
  hasOrganizationRole(caller, organization, "organization-admin");

// Groups.

/** Members see the groups of their organization, so that they can share with them. */
export const canSeeGroups = (caller: UserCaller, organization: string): boolean =>
  canSeeOrganization(caller, organization);

/** Allows creating, changing and deleting groups, and changing their members. */
export const canManageGroups = (caller: UserCaller, organization: string): boolean =>
  canManageMembers(caller, organization);

// Users.

/** Another user in an access check: their ID, site roles, and roles in each organization. */
export type UserTarget = {
  readonly id: string;
  readonly roles: readonly string[];
  readonly organizations: Readonly<Record<string, readonly string[]>>;
};

export const canReadAllUsers = (caller: UserCaller): boolean =>
  hasSiteRole(caller, "owner", "user-admin", "auditor", "template-admin");

/** Allows oneself, site-wide readers, and administrators and auditors of an organization the user is a member of. */
export const canSeeUser = (caller: UserCaller, target: Pick<UserTarget, "id" | "organizations">): boolean =>
  caller.user_id === target.id ||
  canReadAllUsers(caller) ||
  Object.keys(target.organizations).some((organization) => canReadMembers(caller, organization));

export const canCreateUsers = (caller: UserCaller): boolean => hasSiteRole(caller, "owner", "user-admin");

/** Allows changing the profile, suspending and deleting. A user-admin cannot manage an owner. */
export const canManageUser = (caller: UserCaller, target: Pick<UserTarget, "roles">): boolean =>
  isOwner(caller) || (hasSiteRole(caller, "user-admin") && !target.roles.includes("owner"));

/** Also allows editing one's own profile. */
export const canEditProfile = (caller: UserCaller, target: UserTarget): boolean =>
  caller.user_id === target.id || canManageUser(caller, target);

/**
 * Setting another user's password gives access to their account. A user-admin may do so only for users without any role, or they could gain
 * roles they cannot assign.
 */
export const canResetPassword = (caller: UserCaller, target: UserTarget): boolean =>
  isOwner(caller) ||
  (hasSiteRole(caller, "user-admin") &&
    target.roles.length === 0 &&
    Object.values(target.organizations).every((roles) => roles.length === 0));

/** Another user's keys give access to their account, so only owners may manage them. */
export const canManageKeys = (caller: UserCaller, userId: string): boolean =>
  caller.user_id === userId || isOwner(caller);

/** Only owners assign site roles; a user-admin creates members (facts/platform 3.8). */
export const canGiveSiteRoles = (caller: UserCaller): boolean => isOwner(caller);

// Workspaces.

/** A workspace in an access check: its ID, owner and shares. */
export type WorkspaceTarget = {
  readonly id: string;
  readonly owner_id: string;
  readonly organization_id: string;
  readonly user_acl: Acl;
  readonly group_acl: Acl;
};

/**
 * Returns the role in which the workspace is shared with the caller. Users who are not members of its organization have none, whatever was
 * shared before. The group of all members has the organization's ID (rule SH-3).
 */
export const getSharedRole = (caller: UserCaller, workspace: WorkspaceTarget): WorkspaceRole | undefined => {
  const { organization_id, user_acl, group_acl } = workspace;
  return isMember(caller, organization_id) ? findRole(caller, user_acl, group_acl) : undefined;
};

/** Returns the highest role granted to the caller or one of their groups. */
const findRole = (caller: UserCaller, user_acl: Acl, group_acl: Acl): WorkspaceRole | undefined => {
  const roles = [user_acl[caller.user_id], ...caller.groups.map((id) => group_acl[id])];
  return roles.includes("admin") ? "admin" : roles.find((role) => role !== undefined);
};

const isOwn = (caller: UserCaller, workspace: WorkspaceTarget): boolean => workspace.owner_id === caller.user_id;

/** An owner who was removed from the organization may only view, stop and delete the workspace. */
const isMemberAndOwner = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isOwn(caller, workspace) && canWorkIn(caller, workspace.organization_id);

/** Returns whether the caller's key covers the workspace: a key created for one workspace gives access to no other (rule ID-28). */
export const isCoveredByKey = ({ only_workspace }: UserCaller, { id }: Pick<WorkspaceTarget, "id">): boolean =>
  only_workspace === undefined || only_workspace === id;

const isTemplateAdmin = (caller: UserCaller, organization: string): boolean =>
  hasSiteRole(caller, "template-admin") ||
  hasOrganizationRole(caller, organization, "organization-admin", "organization-template-admin");

export const canSeeWorkspace = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isCoveredByKey(caller, workspace) &&
  (isOwn(caller, workspace) ||
    getSharedRole(caller, workspace) !== undefined ||
    isTemplateAdmin(caller, workspace.organization_id));

/** Allows changes such as name, TTL, schedule and dormancy. Not for an owner who was removed from the organization (`isMemberAndOwner`). */
export const canUpdateWorkspace = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isCoveredByKey(caller, workspace) &&
  (isMemberAndOwner(caller, workspace) ||
    getSharedRole(caller, workspace) === "admin" ||
    isTemplateAdmin(caller, workspace.organization_id));

/** New versions of a template run with everything the owner has, so only users who may enter the workspace decide whether it follows them. */
export const canFollowTemplate = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  canChangeInside(caller, workspace);

/**
 * Allows restoring and deleting copies of its files. Requires permission to enter the workspace, because the copies contain all its files.
 */
export const canReplaceFiles = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  canChangeInside(caller, workspace);

const canChangeInside = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  canUpdateWorkspace(caller, workspace) && canUseWorkspace(caller, workspace);

/** Allows stopping, and changes that only reduce what a workspace does. Starting also requires that the owner is a member (rule WK-34). */
export const canStartStop = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  canUpdateWorkspace(caller, workspace) || (isCoveredByKey(caller, workspace) && isOwn(caller, workspace));

/** Allows terminal, ports, containers and files, for users who work in the workspace and site owners. */
export const canUseWorkspace = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isCoveredByKey(caller, workspace) &&
  (isMemberAndOwner(caller, workspace) || getSharedRole(caller, workspace) !== undefined || isOwner(caller));

export const canDeleteWorkspace = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isCoveredByKey(caller, workspace) && (isOwn(caller, workspace) || isTemplateAdmin(caller, workspace.organization_id));

/**
 * Allows sharing the workspace. Not for administrators of templates or the organization: they may see and update workspaces but not enter
 * them, and sharing one with themselves would let them in.
 */
export const canShareWorkspace = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isCoveredByKey(caller, workspace) && (isMemberAndOwner(caller, workspace) || isOwner(caller));

/** Favorites are personal, even for site owners. */
export const canFavorite = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isCoveredByKey(caller, workspace) && isOwn(caller, workspace);

/** Allows choosing any member as the owner of a new workspace (facts/platform 3.4). */
export const canCreateWorkspacesForAll = (caller: UserCaller, organization: string): boolean =>
  hasOrganizationRole(caller, organization, "organization-admin");

/**
 * Allows members to create for themselves and administrators of the organization to create for others, unless the creation ban applies to
 * the caller (facts/platform 3.2). Site owners are always allowed.
 */
export const canCreateWorkspaceFor = (caller: UserCaller, organization: string, userId: string): boolean => {
  if (isOwner(caller)) return true;
  const roles = caller.organizations[organization];
  if (!roles || roles.includes("organization-workspace-creation-ban")) return false;
  return caller.user_id === userId || roles.includes("organization-admin");
};

// Templates and files.

/** A template in an access check: its organization and access lists. A null `group_acl` means all members of the organization. */
export type TemplateTarget = {
  readonly organization_id: string;
  readonly user_acl: Acl;
  readonly group_acl: Acl | null;
};

/** Returns the role that the template's access list gives the caller (rules TA-1, TA-2). `admin` also allows changing the template. */
const getTemplateRole = (caller: UserCaller, { organization_id, user_acl, group_acl }: TemplateTarget) =>
  isMember(caller, organization_id) ? findRole(caller, user_acl, group_acl ?? { [organization_id]: "use" }) : undefined;

/** Allows creating workspaces from it. */
export const canUseTemplate = (caller: UserCaller, template: TemplateTarget): boolean =>
  isTemplateAdmin(caller, template.organization_id) || getTemplateRole(caller, template) !== undefined;

/** Allows seeing it and its versions. */
export const canReadTemplate = (caller: UserCaller, template: TemplateTarget): boolean =>
  hasSiteRole(caller, "auditor") || canUseTemplate(caller, template);

/** Allows changing it, its versions and its access list. */
export const canManageTemplate = (caller: UserCaller, template: TemplateTarget): boolean =>
  isTemplateAdmin(caller, template.organization_id) || getTemplateRole(caller, template) === "admin";

/** Allows seeing imported versions that belong to no template yet. */
export const canReadTemplates = (caller: UserCaller, organization: string): boolean =>
  isMember(caller, organization) || hasSiteRole(caller, "owner", "template-admin", "auditor");

/** Allows creating, changing and deleting all templates and versions of an organization, and uploading files for them. */
export const canManageTemplates = (caller: UserCaller, organization: string): boolean =>
  isTemplateAdmin(caller, organization);

// Reports.

/** Allows reading the audit entries of an organization; without one, of the whole deployment. */
export const canReadAudit = (caller: UserCaller, organization?: string): boolean =>
  hasSiteRole(caller, "owner", "auditor") ||
  (organization !== undefined &&
    hasOrganizationRole(caller, organization, "organization-admin", "organization-auditor"));

/** Allows viewing the use of an organization's templates; without an organization, of all templates. */
export const canViewInsights = (caller: UserCaller, organization?: string): boolean =>
  hasSiteRole(caller, "owner", "template-admin", "auditor") ||
  (organization !== undefined &&
    hasOrganizationRole(
      caller,
      organization,
      "organization-admin",
      "organization-template-admin",
      "organization-auditor",
    ));

/** Allows reading the deployment's configuration, health and load. */
export const canReadDeployment = (caller: UserCaller): boolean => hasSiteRole(caller, "owner", "auditor");

/** Allows changing the announcements and which health warnings are dismissed. */
export const canChangeDeployment = (caller: UserCaller): boolean => isOwner(caller);

// Models.

/** Checks access to providers, their keys and models. Rejects with 403. */
export const checkModelAdmin = (caller: UserCaller): void => {
  if (!isOwner(caller)) throw forbidden("Only an owner may manage models.");
};

// Chats.

export type ChatTarget = { readonly owner_id: string };

/**
 * Allows changing title, labels, archive state and queue, and interrupting. Chats are private to their owner; site owners can view and stop
 * them.
 */
export const canUpdateChat = (caller: UserCaller, chat: ChatTarget): boolean =>
  chat.owner_id === caller.user_id || isOwner(caller);

/** Returns the IDs of the caller and their groups: a chat shared with any of them is readable. Empty for non-members, as for workspaces. */
export const listReaderIds = (caller: UserCaller, organization: string): readonly string[] =>
  isMember(caller, organization) ? [caller.user_id, ...caller.groups] : [];

/** Allows sharing a chat for reading. Its owner may do so while a member of its organization; site owners always may. */
export const canShareChat = (caller: UserCaller, chat: ChatTarget & { readonly organization_id: string }): boolean =>
  isOwner(caller) || (canDriveChat(caller, chat) && canWorkIn(caller, chat.organization_id));

/** Allows sending, editing, promoting and answering. These run with the owner's credentials, so only the owner may (facts/chats 4.1). */
export const canDriveChat = (caller: UserCaller, chat: ChatTarget): boolean => chat.owner_id === caller.user_id;

/** Allows changing the system prompt of all chats and their retention. */
export const canConfigureChats = (caller: UserCaller): boolean => isOwner(caller);

/** Allows reading recorded prompts and answers of all users. */
export const canReadRecordings = (caller: UserCaller): boolean => isOwner(caller);

/** A budget in an access check. `organization_id` is empty if it has none, `owner_id` unless its scope is a chat. */
export type BudgetTarget = {
  readonly scope: BudgetScope;
  readonly organization_id: string;
  readonly owner_id: string;
};

/** Allows setting, raising and removing a budget: site owners, administrators of the organization, and the owner of a chat. */
export const canManageBudget = (caller: UserCaller, { scope, organization_id, owner_id }: BudgetTarget): boolean =>
  isOwner(caller) ||
  (organization_id !== "" && scope !== "chat" && canUpdateOrganization(caller, organization_id)) ||
  (scope === "chat" && owner_id === caller.user_id);

/** Returns whether a budget applies to the caller's own calls, so that they can see it. */
export const isLimitedBy = (
  caller: UserCaller,
  { scope, scope_id }: { readonly scope: BudgetScope; readonly scope_id: string },
): boolean => {
  if (scope === "user") return scope_id === caller.user_id;
  if (scope === "group") return caller.groups.includes(scope_id);
  return scope === "everyone" || (scope === "organization" && isMember(caller, scope_id));
};

export const canCreateChat = (caller: UserCaller, organization: string): boolean => canWorkIn(caller, organization);

// The server itself.

/** Checks access to settings, health, backups and log. Rejects with 403. */
export const checkServerAdmin = (caller: UserCaller): void => {
  if (!isOwner(caller)) throw forbidden("Only an owner may see this.");
};
