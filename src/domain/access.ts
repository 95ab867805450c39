// Who may do what: pure functions over the caller and the thing (facts/platform 3.8). Handlers ask here and nowhere else. Not
// visible is 404, visible but forbidden is 403.
import { forbidden } from "#base/errors.ts";
import type { BudgetScope } from "#schema/ai/budget.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { Acl, WorkspaceRole } from "#schema/workspaces/acl.ts";

export const isOwner = (caller: UserCaller): boolean => caller.roles.includes("owner");

const hasSiteRole = (caller: UserCaller, ...roles: string[]): boolean =>
  roles.some((role) => caller.roles.includes(role));

/** True for the site owner and for anyone who has one of these roles in the organization. */
const hasOrganizationRole = (caller: UserCaller, organization: string, ...roles: string[]): boolean =>
  isOwner(caller) || (caller.organizations[organization]?.some((role) => roles.includes(role)) ?? false);

const isMember = (caller: UserCaller, organization: string): boolean => organization in caller.organizations;

// Organizations and their members.

/**
 * Whether a person may start workspaces, talk to models and spend in an organization: only while they are a member. Looking at what is theirs,
 * stopping and deleting it needs no membership.
 */
export const mayWorkIn = (person: Pick<UserCaller, "organizations">, organization: string): boolean =>
  organization in person.organizations;

/** Members see their organizations; site-wide readers see all. */
export const maySeeOrganization = (caller: UserCaller, organization: string): boolean =>
  isMember(caller, organization) || hasSiteRole(caller, "owner", "auditor", "user-admin", "template-admin");

/** Only the owner makes and deletes organizations. */
export const mayCreateOrganizations = (caller: UserCaller): boolean => isOwner(caller);

export const mayUpdateOrganization = (caller: UserCaller, organization: string): boolean =>
  hasOrganizationRole(caller, organization, "organization-admin");

/** Reading the whole list of members; everyone else sees their own entry. */
export const mayReadMembers = (caller: UserCaller, organization: string): boolean =>
  mayReadAllUsers(caller) || hasOrganizationRole(caller, organization, ...MEMBER_READERS);

const MEMBER_READERS = ["organization-admin", "organization-user-admin", "organization-auditor"];

/** Adding and removing members. */
export const mayManageMembers = (caller: UserCaller, organization: string): boolean =>
  hasSiteRole(caller, "user-admin") ||
  hasOrganizationRole(caller, organization, "organization-admin", "organization-user-admin");

/** Giving and taking roles of an organization. */
export const mayGiveOrganizationRoles = (caller: UserCaller, organization: string): boolean =>
  hasOrganizationRole(caller, organization, "organization-admin");

// Groups.

/** Members see the groups of their organization, so that they can share with them. */
export const maySeeGroups = (caller: UserCaller, organization: string): boolean =>
  maySeeOrganization(caller, organization);

/** Making, changing and deleting groups, and who is in them. */
export const mayManageGroups = (caller: UserCaller, organization: string): boolean =>
  mayManageMembers(caller, organization);

// Users.

/** What is asked about another user: who, with which site roles, and where a member with which roles. */
export type UserTarget = {
  readonly id: string;
  readonly roles: readonly string[];
  readonly organizations: Readonly<Record<string, readonly string[]>>;
};

export const mayReadAllUsers = (caller: UserCaller): boolean =>
  hasSiteRole(caller, "owner", "user-admin", "auditor", "template-admin");

/** Oneself, everyone for site-wide readers, and the members of an organization for those who look after it. */
export const maySeeUser = (caller: UserCaller, target: Pick<UserTarget, "id" | "organizations">): boolean =>
  caller.user_id === target.id ||
  mayReadAllUsers(caller) ||
  Object.keys(target.organizations).some((organization) => mayReadMembers(caller, organization));

export const mayCreateUsers = (caller: UserCaller): boolean => hasSiteRole(caller, "owner", "user-admin");

/** Profile, suspension and deletion. A user-admin has no power over an owner. */
export const mayManageUser = (caller: UserCaller, target: Pick<UserTarget, "roles">): boolean =>
  isOwner(caller) || (hasSiteRole(caller, "user-admin") && !target.roles.includes("owner"));

/** One's own profile may be edited, too. */
export const mayEditProfile = (caller: UserCaller, target: UserTarget): boolean =>
  caller.user_id === target.id || mayManageUser(caller, target);

/**
 * Setting another user's password is becoming that user: a user-admin may do it only to those who have no role at all, else it
 * would be a way to roles that a user-admin may not give.
 */
export const mayResetPassword = (caller: UserCaller, target: UserTarget): boolean =>
  isOwner(caller) ||
  (hasSiteRole(caller, "user-admin") &&
    target.roles.length === 0 &&
    Object.values(target.organizations).every((roles) => roles.length === 0));

/** Keys of another user are that user, so only the owner handles them. */
export const mayManageKeys = (caller: UserCaller, userId: string): boolean =>
  caller.user_id === userId || isOwner(caller);

/** Site roles are given by the owner alone; a user-admin makes members (facts/platform 3.8). */
export const mayGiveSiteRoles = (caller: UserCaller): boolean => isOwner(caller);

// Workspaces.

/** Which workspace it is, whose, and with whom it is shared. */
export type WorkspaceTarget = {
  readonly id: string;
  readonly owner_id: string;
  readonly organization_id: string;
  readonly user_acl: Acl;
  readonly group_acl: Acl;
};

/**
 * What the workspace is shared with the caller as. Anyone who is no member of its organization has no part in it, whatever was given
 * before; the group of all its members has the id of the organization (rule SH-3).
 */
export const sharedRole = (caller: UserCaller, workspace: WorkspaceTarget): WorkspaceRole | undefined => {
  const { organization_id, user_acl, group_acl } = workspace;
  return isMember(caller, organization_id) ? roleIn(caller, user_acl, group_acl) : undefined;
};

/** The highest role that is given to the caller or to one of the caller's groups. */
const roleIn = (caller: UserCaller, user_acl: Acl, group_acl: Acl): WorkspaceRole | undefined => {
  const given = [user_acl[caller.user_id], ...caller.groups.map((id) => group_acl[id])];
  return given.includes("admin") ? "admin" : given.find((role) => role !== undefined);
};

const isOwn = (caller: UserCaller, workspace: WorkspaceTarget): boolean => workspace.owner_id === caller.user_id;

/** A key that was made for one workspace opens no other, whatever its user may do (rule ID-28). */
export const isCovered = ({ only_workspace }: UserCaller, { id }: Pick<WorkspaceTarget, "id">): boolean =>
  only_workspace === undefined || only_workspace === id;

const looksAfterTemplates = (caller: UserCaller, organization: string): boolean =>
  hasSiteRole(caller, "template-admin") ||
  hasOrganizationRole(caller, organization, "organization-admin", "organization-template-admin");

export const maySeeWorkspace = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isCovered(caller, workspace) &&
  (isOwn(caller, workspace) ||
    sharedRole(caller, workspace) !== undefined ||
    looksAfterTemplates(caller, workspace.organization_id));

/** Name, ttl, schedule, dormancy, port shares. */
export const mayUpdateWorkspace = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isCovered(caller, workspace) &&
  (isOwn(caller, workspace) ||
    sharedRole(caller, workspace) === "admin" ||
    looksAfterTemplates(caller, workspace.organization_id));

/** To follow a template's new versions trusts them with what the owner has: only people who may enter the workspace decide that. */
export const mayFollowTemplate = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  mayChangeInside(caller, workspace);

/** Restoring and removing copies of its files: what is in them belongs to people who may enter it. */
export const mayReplaceFiles = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  mayChangeInside(caller, workspace);

const mayChangeInside = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  mayUpdateWorkspace(caller, workspace) && mayUseWorkspace(caller, workspace);

export const mayStartStop = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  mayUpdateWorkspace(caller, workspace);

/** Terminal, ports, containers, files: what happens inside belongs to anyone who works there (and to the site owner). */
export const mayUseWorkspace = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isCovered(caller, workspace) &&
  (isOwn(caller, workspace) || sharedRole(caller, workspace) !== undefined || isOwner(caller));

export const mayDeleteWorkspace = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isCovered(caller, workspace) && (isOwn(caller, workspace) || looksAfterTemplates(caller, workspace.organization_id));

/**
 * Giving others a part in it. Not for those who look after templates or the organization: they may not enter workspaces, and sharing
 * one would be a way in.
 */
export const mayShareWorkspace = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isCovered(caller, workspace) && (isOwn(caller, workspace) || isOwner(caller));

/** Favorites are one's own affair, also for the site owner. */
export const mayFavourite = (caller: UserCaller, workspace: WorkspaceTarget): boolean =>
  isCovered(caller, workspace) && isOwn(caller, workspace);

/** Choosing for whom a workspace is made: those who may make one for every member (facts/platform 3.4). */
export const mayCreateWorkspacesForAll = (caller: UserCaller, organization: string): boolean =>
  hasOrganizationRole(caller, organization, "organization-admin");

/** Members for themselves, those who look after the organization for others; not under the ban (facts/platform 3.2). */
export const mayCreateWorkspaceFor = (caller: UserCaller, organization: string, userId: string): boolean => {
  if (isOwner(caller)) return true;
  const roles = caller.organizations[organization];
  if (!roles || roles.includes("organization-workspace-creation-ban")) return false;
  return caller.user_id === userId || roles.includes("organization-admin");
};

// Templates and files.

/** Where it is, and who may use it. `group_acl` null: all members of the organization may. */
export type TemplateTarget = {
  readonly organization_id: string;
  readonly user_acl: Acl;
  readonly group_acl: Acl | null;
};

/** What the caller may do with it by its own list (rules TA-1, TA-2): `use` it, or change it, too (`admin`). */
const templateRole = (caller: UserCaller, { organization_id, user_acl, group_acl }: TemplateTarget) =>
  isMember(caller, organization_id) ? roleIn(caller, user_acl, group_acl ?? { [organization_id]: "use" }) : undefined;

/** Making workspaces of it. */
export const mayUseTemplate = (caller: UserCaller, template: TemplateTarget): boolean =>
  looksAfterTemplates(caller, template.organization_id) || templateRole(caller, template) !== undefined;

/** Seeing it and its versions. */
export const mayReadTemplate = (caller: UserCaller, template: TemplateTarget): boolean =>
  hasSiteRole(caller, "auditor") || mayUseTemplate(caller, template);

/** Changing it, its versions and who may use it. */
export const mayManageTemplate = (caller: UserCaller, template: TemplateTarget): boolean =>
  looksAfterTemplates(caller, template.organization_id) || templateRole(caller, template) === "admin";

/** Seeing what belongs to no template yet: imported versions. */
export const mayReadTemplates = (caller: UserCaller, organization: string): boolean =>
  isMember(caller, organization) || hasSiteRole(caller, "owner", "template-admin", "auditor");

/** Creating, changing and deleting all templates and versions of an organization; also uploading for them. */
export const mayManageTemplates = (caller: UserCaller, organization: string): boolean =>
  looksAfterTemplates(caller, organization);

// Reports.

/** Without an organization: entries of the whole deployment. */
export const mayReadAudit = (caller: UserCaller, organization?: string): boolean =>
  hasSiteRole(caller, "owner", "auditor") ||
  (organization !== undefined &&
    hasOrganizationRole(caller, organization, "organization-admin", "organization-auditor"));

/** Use of the templates of an organization; without one: of all templates. */
export const mayViewInsights = (caller: UserCaller, organization?: string): boolean =>
  hasSiteRole(caller, "owner", "template-admin", "auditor") ||
  (organization !== undefined &&
    hasOrganizationRole(
      caller,
      organization,
      "organization-admin",
      "organization-template-admin",
      "organization-auditor",
    ));

/** How the deployment is set up, how it fares and how much it has to do. */
export const mayReadDeployment = (caller: UserCaller): boolean => hasSiteRole(caller, "owner", "auditor");

/** What the administrator tells everyone, and which warnings count. */
export const mayChangeDeployment = (caller: UserCaller): boolean => isOwner(caller);

// Models.

/** Providers, their keys and the models they serve. 403. */
export const checkModelAdmin = (caller: UserCaller): void => {
  if (!isOwner(caller)) throw forbidden("Only an owner may manage models.");
};

// Chats.

export type ChatTarget = { readonly owner_id: string };

/** Chats are private: their owner's, and the site owner's to look at and to stop. Title, labels, archive, interrupt, queue. */
export const mayUpdateChat = (caller: UserCaller, chat: ChatTarget): boolean =>
  chat.owner_id === caller.user_id || isOwner(caller);

/** Whom a chat of this organization can be shared with so that the caller may read it; members only, as for workspaces. */
export const readsChatsAs = (caller: UserCaller, organization: string): readonly string[] =>
  isMember(caller, organization) ? [caller.user_id, ...caller.groups] : [];

/** Letting others read along: for whom it belongs to, and for the site owner. */
export const mayShareChat = (caller: UserCaller, chat: ChatTarget): boolean => mayUpdateChat(caller, chat);

/** Sending, editing, promoting and answering run with the owner's credentials, so nobody else may (facts/chats 4.1). */
export const mayDriveChat = (caller: UserCaller, chat: ChatTarget): boolean => chat.owner_id === caller.user_id;

/** What every chat is told, and for how long chats are kept. */
export const mayConfigureChats = (caller: UserCaller): boolean => isOwner(caller);

/** What people have written to models and got from them, where that is recorded. */
export const mayReadRecordings = (caller: UserCaller): boolean => isOwner(caller);

/** What a budget limits: where it belongs, and for a chat whose it is; texts are empty where there is none. */
export type BudgetTarget = {
  readonly scope: BudgetScope;
  readonly organization_id: string;
  readonly owner_id: string;
};

/** Setting, raising and removing a budget: owners of the deployment, administrators of the organization, and the owner of a chat. */
export const mayManageBudget = (caller: UserCaller, { scope, organization_id, owner_id }: BudgetTarget): boolean =>
  isOwner(caller) ||
  (organization_id !== "" && scope !== "chat" && mayUpdateOrganization(caller, organization_id)) ||
  (scope === "chat" && owner_id === caller.user_id);

/** Whether a budget counts for the caller's own calls, so that they may see it. */
export const isLimitedBy = (
  caller: UserCaller,
  { scope, scope_id }: { readonly scope: BudgetScope; readonly scope_id: string },
): boolean => {
  if (scope === "user") return scope_id === caller.user_id;
  if (scope === "group") return caller.groups.includes(scope_id);
  return scope === "everyone" || (scope === "organization" && isMember(caller, scope_id));
};

export const mayCreateChat = (caller: UserCaller, organization: string): boolean => mayWorkIn(caller, organization);

// The server itself.

/** Its settings, health, backups and log. 403. */
export const checkServerAdmin = (caller: UserCaller): void => {
  if (!isOwner(caller)) throw forbidden("Only an owner may see this.");
};
