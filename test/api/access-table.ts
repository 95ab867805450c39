// The reviewed access table: the roles that each function of src/domain/access.ts allows. Checked by access.test.ts and printed by
// access-docs.ts.
import * as access from "#domain/access.ts";
import type { UserCaller } from "#src/api/http/caller.ts";

const ORG = "00000000-0000-4000-8000-0000000000aa";
const caller = (roles: string[], organizations: Record<string, string[]> = { [ORG]: [] }): UserCaller => ({
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
  owner: caller(["owner"], {}),
  "template-admin": caller(["template-admin"], {}),
  "user-admin": caller(["user-admin"], {}),
  auditor: caller(["auditor"], {}),
  "organization-admin": caller([], { [ORG]: ["organization-admin"] }),
  "organization-template-admin": caller([], { [ORG]: ["organization-template-admin"] }),
  "organization-user-admin": caller([], { [ORG]: ["organization-user-admin"] }),
  "organization-auditor": caller([], { [ORG]: ["organization-auditor"] }),
  member: caller([]),
  banned: caller([], { [ORG]: ["organization-workspace-creation-ban"] }),
  "admin elsewhere": caller([], { other: ["organization-admin"] }),
};
export type Name = keyof typeof PEOPLE;

const ownWorkspace = { id: "w", owner_id: "me", organization_id: ORG, user_acl: {}, group_acl: {} };
const foreignWorkspace = { ...ownWorkspace, owner_id: "you" };
const sharedWithMe = (role: "admin" | "use") => ({ ...foreignWorkspace, user_acl: { me: role } });
const you = { id: "you", roles: [], organizations: { [ORG]: [] } };
const boss = { ...you, roles: ["owner"] };
const yourAuditor = { ...you, organizations: { [ORG]: ["organization-auditor"] } };

export const ALL_NAMES = Object.keys(PEOPLE) as Name[];
const TEMPLATE_MANAGERS: Name[] = ["owner", "template-admin", "organization-admin", "organization-template-admin"];
const MEMBERS: Name[] = ALL_NAMES.filter((name) => ORG in PEOPLE[name].organizations);

// biome-ignore format: a table
export const ACTIONS: [string, (who: UserCaller) => boolean, Name[]][] = [
  ["see another user's workspace", (who) => access.canSeeWorkspace(who, foreignWorkspace), TEMPLATE_MANAGERS],
  ["see a workspace shared for use", (who) => access.canSeeWorkspace(who, sharedWithMe("use")), [...TEMPLATE_MANAGERS, ...MEMBERS]],
  ["update one's own workspace", (who) => access.canUpdateWorkspace(who, ownWorkspace), [...TEMPLATE_MANAGERS, ...MEMBERS]],
  ["update another user's workspace", (who) => access.canUpdateWorkspace(who, foreignWorkspace), TEMPLATE_MANAGERS],
  ["update a workspace shared for use", (who) => access.canUpdateWorkspace(who, sharedWithMe("use")), TEMPLATE_MANAGERS],
  ["update a workspace shared as admin", (who) => access.canUpdateWorkspace(who, sharedWithMe("admin")), [...TEMPLATE_MANAGERS, ...MEMBERS]],
  ["replace the files of another user's workspace", (who) => access.canReplaceFiles(who, foreignWorkspace), ["owner"]],
  ["replace the files of a workspace shared as admin", (who) => access.canReplaceFiles(who, sharedWithMe("admin")), ["owner", ...MEMBERS]],
  ["stop one's own workspace", (who) => access.canStartStop(who, ownWorkspace), ALL_NAMES],
  ["start another user's workspace", (who) => access.canStartStop(who, foreignWorkspace), TEMPLATE_MANAGERS],
  ["start a workspace shared as admin", (who) => access.canStartStop(who, sharedWithMe("admin")), [...TEMPLATE_MANAGERS, ...MEMBERS]],
  ["enter one's own workspace", (who) => access.canUseWorkspace(who, ownWorkspace), ["owner", ...MEMBERS]],
  ["enter another user's workspace", (who) => access.canUseWorkspace(who, foreignWorkspace), ["owner"]],
  ["enter a workspace shared for use", (who) => access.canUseWorkspace(who, sharedWithMe("use")), ["owner", ...MEMBERS]],
  ["delete one's own workspace", (who) => access.canDeleteWorkspace(who, ownWorkspace), ALL_NAMES],
  ["delete another user's workspace", (who) => access.canDeleteWorkspace(who, foreignWorkspace), TEMPLATE_MANAGERS],
  ["delete a workspace shared as admin", (who) => access.canDeleteWorkspace(who, sharedWithMe("admin")), TEMPLATE_MANAGERS],
  ["share one's own workspace", (who) => access.canShareWorkspace(who, ownWorkspace), ["owner", ...MEMBERS]],
  ["share another user's workspace", (who) => access.canShareWorkspace(who, foreignWorkspace), ["owner"]],
  ["share a workspace shared as admin", (who) => access.canShareWorkspace(who, sharedWithMe("admin")), ["owner"]],
  ["favorite one's own workspace", (who) => access.canFavorite(who, ownWorkspace), ALL_NAMES],
  ["favorite another user's workspace", (who) => access.canFavorite(who, foreignWorkspace), []],
  ["create one's own workspace", (who) => access.canCreateWorkspaceFor(who, ORG, "me"),
    ["owner", ...MEMBERS.filter((name) => name !== "banned")]],
  ["create a workspace for another user", (who) => access.canCreateWorkspaceFor(who, ORG, "you"), ["owner", "organization-admin"]],
  ["read templates", (who) => access.canReadTemplates(who, ORG), ["owner", "template-admin", "auditor", ...MEMBERS]],
  ["manage templates", (who) => access.canManageTemplates(who, ORG), TEMPLATE_MANAGERS],
  ["see the organization", (who) => access.canSeeOrganization(who, ORG),
    ["owner", "template-admin", "user-admin", "auditor", ...MEMBERS]],
  ["change the organization", (who) => access.canUpdateOrganization(who, ORG), ["owner", "organization-admin"]],
  ["create organizations", access.canCreateOrganizations, ["owner"]],
  ["read the members", (who) => access.canReadMembers(who, ORG), ["owner", "template-admin", "user-admin", "auditor",
    "organization-admin", "organization-user-admin", "organization-auditor"]],
  ["add members", (who) => access.canManageMembers(who, ORG),
    ["owner", "user-admin", "organization-admin", "organization-user-admin"]],
  ["assign organization roles", (who) => access.canGiveOrganizationRoles(who, ORG), ["owner", "organization-admin"]],
  ["assign site roles", access.canGiveSiteRoles, ["owner"]],
  ["see a colleague", (who) => access.canSeeUser(who, you), ["owner", "template-admin", "user-admin", "auditor",
    "organization-admin", "organization-user-admin", "organization-auditor"]],
  ["see one's own profile", (who) => access.canSeeUser(who, { id: "me", organizations: {} }), ALL_NAMES],
  ["create users", access.canCreateUsers, ["owner", "user-admin"]],
  ["suspend or delete a user", (who) => access.canManageUser(who, you), ["owner", "user-admin"]],
  ["suspend or delete an owner", (who) => access.canManageUser(who, boss), ["owner"]],
  ["change one's own name", (who) => access.canEditProfile(who, { ...you, id: "me" }), ALL_NAMES],
  ["set a member's password", (who) => access.canResetPassword(who, you), ["owner", "user-admin"]],
  ["set an owner's password", (who) => access.canResetPassword(who, boss), ["owner"]],
  ["set the password of a user with a role", (who) => access.canResetPassword(who, yourAuditor), ["owner"]],
  ["manage one's own API keys", (who) => access.canManageKeys(who, "me"), ALL_NAMES],
  ["manage another user's API keys", (who) => access.canManageKeys(who, "you"), ["owner"]],
  ["read the whole audit log", (who) => access.canReadAudit(who), ["owner", "auditor"]],
  ["read the organization's audit log", (who) => access.canReadAudit(who, ORG),
    ["owner", "auditor", "organization-admin", "organization-auditor"]],
];
