// The reviewed access table: the roles that each function of src/domain/access.ts allows. Checked by access.test.ts and printed by
// access-docs.ts.
import * as access from "#domain/access.ts";
import type { UserCaller } from "#src/api/http/caller.ts";

const ORG = "00000000-0000-4000-8000-0000000000aa";
const createCaller = (roles: string[], organizations: Record<string, string[]> = { [ORG]: [] }): UserCaller => ({
  kind: "user",
  user_id: "me",
  username: "me",
  roles,
  organizations,
  groups: Object.keys(organizations),
  key_id: "k",
  scopes: ["all"],
  compat: false,
});

/** One person per role. `member` has none; `banned` may not create workspaces. */
export const PEOPLE = {
  owner: createCaller(["owner"], {}),
  "template-admin": createCaller(["template-admin"], {}),
  "user-admin": createCaller(["user-admin"], {}),
  auditor: createCaller(["auditor"], {}),
  "organization-admin": createCaller([], { [ORG]: ["organization-admin"] }),
  "organization-template-admin": createCaller([], { [ORG]: ["organization-template-admin"] }),
  "organization-user-admin": createCaller([], { [ORG]: ["organization-user-admin"] }),
  "organization-auditor": createCaller([], { [ORG]: ["organization-auditor"] }),
  member: createCaller([]),
  banned: createCaller([], { [ORG]: ["organization-workspace-creation-ban"] }),
  "admin elsewhere": createCaller([], { other: ["organization-admin"] }),
};
export type Name = keyof typeof PEOPLE;

const ownWorkspace = { id: "w", owner_id: "me", organization_id: ORG, user_acl: {}, group_acl: {} };
const foreignWorkspace = { ...ownWorkspace, owner_id: "you" };
const sharedWithMe = (role: "admin" | "use") => ({ ...foreignWorkspace, user_acl: { me: role } });
const colleague = { id: "you", roles: [], organizations: { [ORG]: [] } };
const colleagueWithOwnerRole = { ...colleague, roles: ["owner"] };
const colleagueWithAuditorRole = { ...colleague, organizations: { [ORG]: ["organization-auditor"] } };

export const ROLE_NAMES = Object.keys(PEOPLE) as Name[];
const TEMPLATE_MANAGERS: Name[] = ["owner", "template-admin", "organization-admin", "organization-template-admin"];
const MEMBERS: Name[] = ROLE_NAMES.filter((name) => ORG in PEOPLE[name].organizations);

// biome-ignore format: a table
export const ACTIONS: [string, (caller: UserCaller) => boolean, Name[]][] = [
  ["see another user's workspace", (caller) => access.canSeeWorkspace(caller, foreignWorkspace), TEMPLATE_MANAGERS],
  ["see a workspace shared for use", (caller) => access.canSeeWorkspace(caller, sharedWithMe("use")), [...TEMPLATE_MANAGERS, ...MEMBERS]],
  ["update one's own workspace", (caller) => access.canUpdateWorkspace(caller, ownWorkspace), [...TEMPLATE_MANAGERS, ...MEMBERS]],
  ["update another user's workspace", (caller) => access.canUpdateWorkspace(caller, foreignWorkspace), TEMPLATE_MANAGERS],
  ["update a workspace shared for use", (caller) => access.canUpdateWorkspace(caller, sharedWithMe("use")), TEMPLATE_MANAGERS],
  ["update a workspace shared as admin", (caller) => access.canUpdateWorkspace(caller, sharedWithMe("admin")), [...TEMPLATE_MANAGERS, ...MEMBERS]],
  ["replace the files of another user's workspace", (caller) => access.canReplaceFiles(caller, foreignWorkspace), ["owner"]],
  ["replace the files of a workspace shared as admin", (caller) => access.canReplaceFiles(caller, sharedWithMe("admin")), ["owner", ...MEMBERS]],
  ["stop one's own workspace", (caller) => access.canStartStop(caller, ownWorkspace), ROLE_NAMES],
  ["start another user's workspace", (caller) => access.canStartStop(caller, foreignWorkspace), TEMPLATE_MANAGERS],
  ["start a workspace shared as admin", (caller) => access.canStartStop(caller, sharedWithMe("admin")), [...TEMPLATE_MANAGERS, ...MEMBERS]],
  ["enter one's own workspace", (caller) => access.canUseWorkspace(caller, ownWorkspace), ["owner", ...MEMBERS]],
  ["enter another user's workspace", (caller) => access.canUseWorkspace(caller, foreignWorkspace), ["owner"]],
  ["enter a workspace shared for use", (caller) => access.canUseWorkspace(caller, sharedWithMe("use")), ["owner", ...MEMBERS]],
  ["delete one's own workspace", (caller) => access.canDeleteWorkspace(caller, ownWorkspace), ROLE_NAMES],
  ["delete another user's workspace", (caller) => access.canDeleteWorkspace(caller, foreignWorkspace), TEMPLATE_MANAGERS],
  ["delete a workspace shared as admin", (caller) => access.canDeleteWorkspace(caller, sharedWithMe("admin")), TEMPLATE_MANAGERS],
  ["share one's own workspace", (caller) => access.canShareWorkspace(caller, ownWorkspace), ["owner", ...MEMBERS]],
  ["share another user's workspace", (caller) => access.canShareWorkspace(caller, foreignWorkspace), ["owner"]],
  ["share a workspace shared as admin", (caller) => access.canShareWorkspace(caller, sharedWithMe("admin")), ["owner"]],
  ["favorite one's own workspace", (caller) => access.canFavorite(caller, ownWorkspace), ROLE_NAMES],
  ["favorite another user's workspace", (caller) => access.canFavorite(caller, foreignWorkspace), []],
  ["create one's own workspace", (caller) => access.canCreateWorkspaceFor(caller, ORG, "me"),
    ["owner", ...MEMBERS.filter((name) => name !== "banned")]],
  ["create a workspace for another user", (caller) => access.canCreateWorkspaceFor(caller, ORG, "you"), ["owner", "organization-admin"]],
  ["read templates", (caller) => access.canReadTemplates(caller, ORG), ["owner", "template-admin", "auditor", ...MEMBERS]],
  ["manage templates", (caller) => access.canManageTemplates(caller, ORG), TEMPLATE_MANAGERS],
  ["see the organization", (caller) => access.canSeeOrganization(caller, ORG),
    ["owner", "template-admin", "user-admin", "auditor", ...MEMBERS]],
  ["change the organization", (caller) => access.canUpdateOrganization(caller, ORG), ["owner", "organization-admin"]],
  ["create organizations", access.canCreateOrganizations, ["owner"]],
  ["read the members", (caller) => access.canReadMembers(caller, ORG), ["owner", "template-admin", "user-admin", "auditor",
    "organization-admin", "organization-user-admin", "organization-auditor"]],
  ["add members", (caller) => access.canManageMembers(caller, ORG),
    ["owner", "user-admin", "organization-admin", "organization-user-admin"]],
  ["assign organization roles", (caller) => access.canGiveOrganizationRoles(caller, ORG), ["owner", "organization-admin"]],
  ["assign site roles", access.canGiveSiteRoles, ["owner"]],
  ["see a colleague", (caller) => access.canSeeUser(caller, colleague), ["owner", "template-admin", "user-admin", "auditor",
    "organization-admin", "organization-user-admin", "organization-auditor"]],
  ["see one's own profile", (caller) => access.canSeeUser(caller, { id: "me", organizations: {} }), ROLE_NAMES],
  ["create users", access.canCreateUsers, ["owner", "user-admin"]],
  ["suspend or delete a user", (caller) => access.canManageUser(caller, colleague), ["owner", "user-admin"]],
  ["suspend or delete an owner", (caller) => access.canManageUser(caller, colleagueWithOwnerRole), ["owner"]],
  ["change one's own name", (caller) => access.canEditProfile(caller, { ...colleague, id: "me" }), ROLE_NAMES],
  ["set a member's password", (caller) => access.canResetPassword(caller, colleague), ["owner", "user-admin"]],
  ["set an owner's password", (caller) => access.canResetPassword(caller, colleagueWithOwnerRole), ["owner"]],
  ["set the password of a user with a role", (caller) => access.canResetPassword(caller, colleagueWithAuditorRole), ["owner"]],
  ["manage one's own API keys", (caller) => access.canManageKeys(caller, "me"), ROLE_NAMES],
  ["manage another user's API keys", (caller) => access.canManageKeys(caller, "you"), ["owner"]],
  ["read the whole audit log", (caller) => access.canReadAudit(caller), ["owner", "auditor"]],
  ["read the organization's audit log", (caller) => access.canReadAudit(caller, ORG),
    ["owner", "auditor", "organization-admin", "organization-auditor"]],
];
