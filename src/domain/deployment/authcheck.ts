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
import { allows } from "#schema/users/scopes.ts";
import * as access from "../access.ts";

const MOST = 200;
/** The names return in the answer. */
const NAME = /^[^\p{Cc}\p{Zl}\p{Zp}]{0,200}$/u;

/** The relevant data of the resource: owner and organization. Without an organization, it means all of them. */
type Meant = {
  readonly owner: string | undefined;
  readonly organization: string | undefined;
  readonly store: Store;
  readonly id: string | undefined;
};
type Rule = (caller: UserCaller, meant: Meant) => boolean | Promise<boolean>;
type Rules = Readonly<Record<string, Rule>>;

const NOWHERE = "";

/**
 * Returns the workspace if its ID is given. A missing one is treated as having no owner, so that the answer does not reveal which exist.
 */
const resolveWorkspace = async (meant: Meant): Promise<access.WorkspaceTarget | undefined> => {
  const { store, id, owner = NOWHERE, organization = NOWHERE } = meant;
  if (id !== undefined) return store.get(findWorkspace({ id }));
  return { id: NOWHERE, owner_id: owner, organization_id: organization, user_acl: {}, group_acl: {} };
};

const onWorkspace =
  (may: (caller: UserCaller, workspace: access.WorkspaceTarget) => boolean): Rule =>
  async (caller, meant) => {
    const workspace = await resolveWorkspace(meant);
    return workspace !== undefined && may(caller, workspace);
  };

const inOrganization =
  (may: (caller: UserCaller, organization: string) => boolean): Rule =>
  (caller, { organization = NOWHERE }) =>
    may(caller, organization);

/** Checks the template if its ID is given, or else all of an organization. */
const onTemplate =
  (
    may: (caller: UserCaller, template: access.TemplateTarget) => boolean,
    mayAll: (caller: UserCaller, organization: string) => boolean,
  ): Rule =>
  async (caller, { store, id, organization = NOWHERE }) => {
    if (id === undefined) return mayAll(caller, organization);
    const template = await store.get(findTemplate({ id }));
    return template !== undefined && may(caller, template);
  };

const onUser =
  (may: (caller: UserCaller, user: access.UserTarget) => boolean, withoutOne: (caller: UserCaller) => boolean): Rule =>
  async (caller, { store, id, owner }) => {
    const wanted = id ?? owner;
    if (wanted === undefined) return withoutOne(caller);
    const user = await store.get(findUser({ id: wanted }));
    if (!user) return false;
    const { organizations } = await readMemberships(store, user.id);
    return may(caller, { id: user.id, roles: user.roles, organizations });
  };

/** Allows only its owner and site owners. A resource is never looked up by ID, so that its owner is not revealed. */
const own: Rule = (caller, { owner, id }) => access.isOwner(caller) || (owner === caller.user_id && id === undefined);
const forSiteOwner: Rule = (caller) => access.isOwner(caller);
const everything = (rule: Rule): Rules => ({ create: rule, read: rule, update: rule, delete: rule });

const WORKSPACE: Rules = {
  create: (caller, { owner = NOWHERE, organization = NOWHERE }) =>
    access.mayCreateWorkspaceFor(caller, organization, owner || caller.user_id),
  read: onWorkspace(access.maySeeWorkspace),
  update: onWorkspace(access.mayUpdateWorkspace),
  delete: onWorkspace(access.mayDeleteWorkspace),
  start: onWorkspace(access.mayStartStop),
  stop: onWorkspace(access.mayStartStop),
  ssh: onWorkspace(access.mayUseWorkspace),
  application_connect: onWorkspace(access.mayUseWorkspace),
  share: onWorkspace(access.mayShareWorkspace),
};

const RULES: Readonly<Record<string, Rules>> = {
  workspace: WORKSPACE,
  template: {
    create: inOrganization(access.mayManageTemplates),
    read: onTemplate(access.mayReadTemplate, access.mayReadTemplates),
    update: onTemplate(access.mayManageTemplate, access.mayManageTemplates),
    delete: onTemplate(access.mayManageTemplate, access.mayManageTemplates),
    use: onTemplate(access.mayUseTemplate, access.mayReadTemplates),
    view_insights: (caller, { organization }) => access.mayViewInsights(caller, organization),
  },
  user: {
    create: access.mayCreateUsers,
    read: onUser(access.maySeeUser, access.mayReadAllUsers),
    update: onUser(access.mayManageUser, access.mayCreateUsers),
    delete: onUser(access.mayManageUser, access.mayCreateUsers),
    read_personal: onUser((caller, user) => caller.user_id === user.id, access.isOwner),
    update_personal: onUser(access.mayEditProfile, access.isOwner),
  },
  organization: {
    create: access.mayCreateOrganizations,
    read: inOrganization(access.maySeeOrganization),
    update: inOrganization(access.mayUpdateOrganization),
    delete: access.mayCreateOrganizations,
  },
  organization_member: {
    create: inOrganization(access.mayManageMembers),
    read: inOrganization(access.mayReadMembers),
    update: inOrganization(access.mayGiveOrganizationRoles),
    delete: inOrganization(access.mayManageMembers),
  },
  assign_org_role: {
    assign: inOrganization(access.mayGiveOrganizationRoles),
    read: inOrganization(access.maySeeOrganization),
  },
  assign_role: { assign: forSiteOwner, read: access.mayReadAllUsers },
  audit_log: { read: (caller, { organization }) => access.mayReadAudit(caller, organization) },
  chat: {
    create: inOrganization(access.mayCreateChat),
    read: own,
    update: own,
    delete: own,
    share: own,
  },
  api_key: everything(own),
  file: { create: inOrganization(access.mayManageTemplates), read: forSiteOwner },
  provisioner_key: everything(inOrganization(access.mayUpdateOrganization)),
  provisioner_daemon: { read: inOrganization(access.maySeeOrganization) },
  provisioner_jobs: { read: inOrganization(access.mayManageTemplates) },
  deployment_config: { read: access.mayReadDeployment, update: forSiteOwner },
  deployment_stats: { read: access.mayReadDeployment },
  debug_info: { read: access.mayReadDeployment },
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
  const asked = Object.entries(checks);
  if (asked.length > MOST) throw invalidField("checks", `must be at most ${MOST}`);
  if (!asked.every(([name]) => NAME.test(name))) {
    throw invalidField(
      "checks",
      "Names have at most 200 characters, none of them a line break or another control character.",
    );
  }
  const answers: [string, boolean][] = [];
  for (const [name, check] of asked) answers.push([name, await answer(store, caller, check)]);
  return Object.fromEntries(answers);
};

const answer = async (store: Store, caller: UserCaller, { object, action }: AuthCheck): Promise<boolean> => {
  const { resource_type } = object;
  const rules = Object.hasOwn(RULES, resource_type) ? RULES[resource_type] : undefined;
  const rule = rules && Object.hasOwn(rules, action) ? rules[action] : undefined;
  if (!rule || !allows(caller.scopes, `${resource_type}:${action}`)) return false;
  if (object.resource_id && !isUuid(object.resource_id)) return false;
  const meant = await meantBy(store, caller, object);
  if (object.any_org !== true) return rule(caller, meant);
  for (const organization of Object.keys(caller.organizations)) {
    if (await rule(caller, { ...meant, organization })) return true;
  }
  return false;
};

const meantBy = async (store: Store, caller: UserCaller, object: AuthObject): Promise<Meant> => {
  const { owner_id, organization_id, resource_id, resource_type } = object;
  const id = resource_id?.toLowerCase() || undefined;
  const template = resource_type === "template" && id ? await store.get(findTemplate({ id })) : undefined;
  const owner = (owner_id === "me" ? caller.user_id : owner_id) || undefined;
  // A missing template is in no organization, whatever the request says.
  if (resource_type === "template" && id) return { store, id, owner, organization: template?.organization_id };
  const organization = (resource_type === "organization" && id) || organization_id || undefined;
  return { store, id, owner, organization };
};
