// Checks the caller's permissions by name, with the same functions as the routes (src/domain/access.ts), using the clients' names of
// resources and actions. Unknown names are denied (rule DP-2).
import { invalidField } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { findTemplate } from "#db/templates/templates.ts";
import { readMemberships } from "#db/users/members.ts";
import { findUser } from "#db/users/users.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { AuthCheck, AuthObject } from "#schema/deployment/authcheck.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { hasScope } from "#schema/users/scopes.ts";
import * as access from "../access.ts";

const MAX_CHECKS = 200;
/** The response repeats the names, so they must be short and printable. */
const NAME = /^[^\p{Cc}\p{Zl}\p{Zp}]{0,200}$/u;

/** What a check knows about its resource. Without an organization, the check is about all organizations. */
type CheckedResource = {
  readonly owner: string | undefined;
  readonly organization: string | undefined;
  readonly store: Store;
  readonly id: string | undefined;
};
type Rule = (caller: UserCaller, resource: CheckedResource) => boolean | Promise<boolean>;
type Rules = Readonly<Record<string, Rule>>;

const UNKNOWN_ID = "";

/** Returns the workspace if its ID is given. A missing one is treated as having no owner, so that the answer does not reveal which exist. */
const resolveWorkspace = async (resource: CheckedResource): Promise<access.WorkspaceTarget | undefined> => {
  const { store, id, owner = UNKNOWN_ID, organization = UNKNOWN_ID } = resource;
  if (id !== undefined) return store.get(findWorkspace({ id }));
  return { id: UNKNOWN_ID, owner_id: owner, organization_id: organization, user_acl: {}, group_acl: {} };
};

const workspaceRule =
  (isAllowed: (caller: UserCaller, workspace: access.WorkspaceTarget) => boolean): Rule =>
  async (caller, resource) => {
    const workspace = await resolveWorkspace(resource);
    return workspace !== undefined && isAllowed(caller, workspace);
  };

const organizationRule =
  (isAllowed: (caller: UserCaller, organization: string) => boolean): Rule =>
  (caller, { organization = UNKNOWN_ID }) =>
    isAllowed(caller, organization);

/** Checks the template if its ID is given, or else all of an organization. */
const templateRule =
  (
    isAllowed: (caller: UserCaller, template: access.TemplateTarget) => boolean,
    isAllowedForAll: (caller: UserCaller, organization: string) => boolean,
  ): Rule =>
  async (caller, { store, id, organization = UNKNOWN_ID }) => {
    if (id === undefined) return isAllowedForAll(caller, organization);
    const template = await store.get(findTemplate({ id }));
    return template !== undefined && isAllowed(caller, template);
  };

const userRule =
  (
    isAllowed: (caller: UserCaller, user: access.UserTarget) => boolean,
    isAllowedWithoutUser: (caller: UserCaller) => boolean,
  ): Rule =>
  async (caller, { store, id, owner }) => {
    const userId = id ?? owner;
    if (userId === undefined) return isAllowedWithoutUser(caller);
    const user = await store.get(findUser({ id: userId }));
    if (!user) return false;
    const { organizations } = await readMemberships(store, user.id);
    return isAllowed(caller, { id: user.id, roles: user.roles, organizations });
  };

/** Allows only its owner and site owners. A resource is never looked up by ID, so that its owner is not revealed. */
const ownRule: Rule = (caller, { owner, id }) =>
  access.isOwner(caller) || (owner === caller.user_id && id === undefined);
const forSiteOwner: Rule = (caller) => access.isOwner(caller);
const toCrudRules = (rule: Rule): Rules => ({ create: rule, read: rule, update: rule, delete: rule });

const WORKSPACE: Rules = {
  create: (caller, { owner = UNKNOWN_ID, organization = UNKNOWN_ID }) =>
    access.canCreateWorkspaceFor(caller, organization, owner || caller.user_id),
  read: workspaceRule(access.canSeeWorkspace),
  update: workspaceRule(access.canUpdateWorkspace),
  delete: workspaceRule(access.canDeleteWorkspace),
  start: workspaceRule(access.canStartStop),
  stop: workspaceRule(access.canStartStop),
  ssh: workspaceRule(access.canUseWorkspace),
  application_connect: workspaceRule(access.canUseWorkspace),
  share: workspaceRule(access.canShareWorkspace),
};

const RULES: Readonly<Record<string, Rules>> = {
  workspace: WORKSPACE,
  template: {
    create: organizationRule(access.canManageTemplates),
    read: templateRule(access.canReadTemplate, access.canReadTemplates),
    update: templateRule(access.canManageTemplate, access.canManageTemplates),
    delete: templateRule(access.canManageTemplate, access.canManageTemplates),
    use: templateRule(access.canUseTemplate, access.canReadTemplates),
    view_insights: (caller, { organization }) => access.canViewInsights(caller, organization),
  },
  user: {
    create: access.canCreateUsers,
    read: userRule(access.canSeeUser, access.canReadAllUsers),
    update: userRule(access.canManageUser, access.canCreateUsers),
    delete: userRule(access.canManageUser, access.canCreateUsers),
    read_personal: userRule((caller, user) => caller.user_id === user.id, access.isOwner),
    update_personal: userRule(access.canEditProfile, access.isOwner),
  },
  organization: {
    create: access.canCreateOrganizations,
    read: organizationRule(access.canSeeOrganization),
    update: organizationRule(access.canUpdateOrganization),
    delete: access.canCreateOrganizations,
  },
  organization_member: {
    create: organizationRule(access.canManageMembers),
    read: organizationRule(access.canReadMembers),
    update: organizationRule(access.canGiveOrganizationRoles),
    delete: organizationRule(access.canManageMembers),
  },
  assign_org_role: {
    assign: organizationRule(access.canGiveOrganizationRoles),
    read: organizationRule(access.canSeeOrganization),
  },
  assign_role: { assign: forSiteOwner, read: access.canReadAllUsers },
  audit_log: { read: (caller, { organization }) => access.canReadAudit(caller, organization) },
  chat: {
    create: organizationRule(access.canCreateChat),
    read: ownRule,
    update: ownRule,
    delete: ownRule,
    share: ownRule,
  },
  api_key: toCrudRules(ownRule),
  file: { create: organizationRule(access.canManageTemplates), read: forSiteOwner },
  provisioner_key: toCrudRules(organizationRule(access.canUpdateOrganization)),
  provisioner_daemon: { read: organizationRule(access.canSeeOrganization) },
  provisioner_jobs: { read: organizationRule(access.canManageTemplates) },
  deployment_config: { read: access.canReadDeployment, update: forSiteOwner },
  deployment_stats: { read: access.canReadDeployment },
  debug_info: { read: access.canReadDeployment },
};

/**
 * Returns the results under the same names. Rejects with 400 when there are too many. The scopes of the caller's key apply as for the
 * resource itself.
 */
export const answerChecks = async (
  store: Store,
  caller: UserCaller,
  checks: Readonly<Record<string, AuthCheck>>,
): Promise<Record<string, boolean>> => {
  const requested = Object.entries(checks);
  if (requested.length > MAX_CHECKS) throw invalidField("checks", `must be at most ${MAX_CHECKS}`);
  if (!requested.every(([name]) => NAME.test(name))) {
    throw invalidField(
      "checks",
      "Names have at most 200 characters, none of them a line break or another control character.",
    );
  }
  const answers: [string, boolean][] = [];
  for (const [name, check] of requested) answers.push([name, await runCheck(store, caller, check)]);
  return Object.fromEntries(answers);
};

const runCheck = async (store: Store, caller: UserCaller, { object, action }: AuthCheck): Promise<boolean> => {
  const { resource_type } = object;
  const rules = Object.hasOwn(RULES, resource_type) ? RULES[resource_type] : undefined;
  const rule = rules && Object.hasOwn(rules, action) ? rules[action] : undefined;
  if (!rule || !hasScope(caller.scopes, `${resource_type}:${action}`)) return false;
  if (object.resource_id && !isUuid(object.resource_id)) return false;
  const resource = await resolveResource(store, caller, object);
  if (object.any_org !== true) return rule(caller, resource);
  for (const organization of Object.keys(caller.organizations)) {
    if (await rule(caller, { ...resource, organization })) return true;
  }
  return false;
};

const resolveResource = async (store: Store, caller: UserCaller, object: AuthObject): Promise<CheckedResource> => {
  const { owner_id, organization_id, resource_id, resource_type } = object;
  const id = resource_id?.toLowerCase() || undefined;
  const template = resource_type === "template" && id ? await store.get(findTemplate({ id })) : undefined;
  const owner = (owner_id === "me" ? caller.user_id : owner_id) || undefined;
  // A missing template is in no organization, whatever the request says.
  if (resource_type === "template" && id) return { store, id, owner, organization: template?.organization_id };
  const organization = (resource_type === "organization" && id) || organization_id || undefined;
  return { store, id, owner, organization };
};
