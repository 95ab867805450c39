// The reviewed table of who may do what: every role against every question of src/domain/access.ts. Read by access.test.ts, which checks
// each, and by access-docs.ts, which prints it.
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

const own = { id: "w", owner_id: "me", organization_id: ORG, user_acl: {}, group_acl: {} };
const foreign = { ...own, owner_id: "you" };
const shared = (role: "admin" | "use") => ({ ...foreign, user_acl: { me: role } });
const you = { id: "you", roles: [], organizations: { [ORG]: [] } };
const boss = { ...you, roles: ["owner"] };
const yourAuditor = { ...you, organizations: { [ORG]: ["organization-auditor"] } };

export const EVERYBODY = Object.keys(PEOPLE) as Name[];
const LEADS: Name[] = ["owner", "template-admin", "organization-admin", "organization-template-admin"];
const INSIDERS: Name[] = EVERYBODY.filter((name) => ORG in PEOPLE[name].organizations);

// biome-ignore format: a table
export const ACTIONS: [string, (who: UserCaller) => boolean, Name[]][] = [
  ["see a foreign workspace", (who) => access.maySeeWorkspace(who, foreign), LEADS],
  ["see a workspace shared for use", (who) => access.maySeeWorkspace(who, shared("use")), [...LEADS, ...INSIDERS]],
  ["update an own workspace", (who) => access.mayUpdateWorkspace(who, own), [...LEADS, ...INSIDERS]],
  ["update a foreign workspace", (who) => access.mayUpdateWorkspace(who, foreign), LEADS],
  ["update a workspace shared for use", (who) => access.mayUpdateWorkspace(who, shared("use")), LEADS],
  ["update a workspace shared as admin", (who) => access.mayUpdateWorkspace(who, shared("admin")), [...LEADS, ...INSIDERS]],
  ["replace the files of a foreign workspace", (who) => access.mayReplaceFiles(who, foreign), ["owner"]],
  ["replace the files of a workspace shared as admin", (who) => access.mayReplaceFiles(who, shared("admin")), ["owner", ...INSIDERS]],
  ["stop an own workspace", (who) => access.mayStartStop(who, own), EVERYBODY],
  ["start a foreign workspace", (who) => access.mayStartStop(who, foreign), LEADS],
  ["start a workspace shared as admin", (who) => access.mayStartStop(who, shared("admin")), [...LEADS, ...INSIDERS]],
  ["enter an own workspace", (who) => access.mayUseWorkspace(who, own), ["owner", ...INSIDERS]],
  ["enter a foreign workspace", (who) => access.mayUseWorkspace(who, foreign), ["owner"]],
  ["enter a workspace shared for use", (who) => access.mayUseWorkspace(who, shared("use")), ["owner", ...INSIDERS]],
  ["delete an own workspace", (who) => access.mayDeleteWorkspace(who, own), EVERYBODY],
  ["delete a foreign workspace", (who) => access.mayDeleteWorkspace(who, foreign), LEADS],
  ["delete a workspace shared as admin", (who) => access.mayDeleteWorkspace(who, shared("admin")), LEADS],
  ["share an own workspace", (who) => access.mayShareWorkspace(who, own), ["owner", ...INSIDERS]],
  ["share a foreign workspace", (who) => access.mayShareWorkspace(who, foreign), ["owner"]],
  ["share a workspace shared as admin", (who) => access.mayShareWorkspace(who, shared("admin")), ["owner"]],
  ["make a favourite of an own workspace", (who) => access.mayFavorite(who, own), EVERYBODY],
  ["make a favourite of a foreign workspace", (who) => access.mayFavorite(who, foreign), []],
  ["create a workspace for oneself", (who) => access.mayCreateWorkspaceFor(who, ORG, "me"),
    ["owner", ...INSIDERS.filter((name) => name !== "banned")]],
  ["create a workspace for another", (who) => access.mayCreateWorkspaceFor(who, ORG, "you"), ["owner", "organization-admin"]],
  ["read templates", (who) => access.mayReadTemplates(who, ORG), ["owner", "template-admin", "auditor", ...INSIDERS]],
  ["manage templates", (who) => access.mayManageTemplates(who, ORG), LEADS],
  ["see the organization", (who) => access.maySeeOrganization(who, ORG),
    ["owner", "template-admin", "user-admin", "auditor", ...INSIDERS]],
  ["change the organization", (who) => access.mayUpdateOrganization(who, ORG), ["owner", "organization-admin"]],
  ["create organizations", access.mayCreateOrganizations, ["owner"]],
  ["read the members", (who) => access.mayReadMembers(who, ORG), ["owner", "template-admin", "user-admin", "auditor",
    "organization-admin", "organization-user-admin", "organization-auditor"]],
  ["add members", (who) => access.mayManageMembers(who, ORG),
    ["owner", "user-admin", "organization-admin", "organization-user-admin"]],
  ["give roles of the organization", (who) => access.mayGiveOrganizationRoles(who, ORG), ["owner", "organization-admin"]],
  ["give site roles", access.mayGiveSiteRoles, ["owner"]],
  ["see a colleague", (who) => access.maySeeUser(who, you), ["owner", "template-admin", "user-admin", "auditor",
    "organization-admin", "organization-user-admin", "organization-auditor"]],
  ["see oneself", (who) => access.maySeeUser(who, { id: "me", organizations: {} }), EVERYBODY],
  ["create users", access.mayCreateUsers, ["owner", "user-admin"]],
  ["suspend or delete a user", (who) => access.mayManageUser(who, you), ["owner", "user-admin"]],
  ["suspend or delete an owner", (who) => access.mayManageUser(who, boss), ["owner"]],
  ["rename oneself", (who) => access.mayEditProfile(who, { ...you, id: "me" }), EVERYBODY],
  ["set a member's password", (who) => access.mayResetPassword(who, you), ["owner", "user-admin"]],
  ["set an owner's password", (who) => access.mayResetPassword(who, boss), ["owner"]],
  ["set the password of one with a role", (who) => access.mayResetPassword(who, yourAuditor), ["owner"]],
  ["handle own keys", (who) => access.mayManageKeys(who, "me"), EVERYBODY],
  ["handle another's keys", (who) => access.mayManageKeys(who, "you"), ["owner"]],
  ["read the whole audit log", (who) => access.mayReadAudit(who), ["owner", "auditor"]],
  ["read the organization's audit log", (who) => access.mayReadAudit(who, ORG),
    ["owner", "auditor", "organization-admin", "organization-auditor"]],
];
