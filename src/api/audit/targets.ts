// Audit targets: tell the audit log which resource a rejected request tried to change. A route declares its target in `operation`, such as
// `audit: target.writes(target.workspace)`. A target finds the resource in the path, without checking access. It returns undefined if the
// resource does not exist; then no entry is written (rule AU-16). test/api/audit/table.ts lists the operations without a target, with the
// reason (rule AU-17).
import { isUuid, NIL_UUID } from "#base/ids.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import { findMcpServer } from "#db/models/mcp-servers.ts";
import { findOAuth2App, findOAuth2Secret } from "#db/oauth2/apps.ts";
import type { AuditEntry } from "#db/reports/audit/audit.ts";
import { findTask, findTaskByName } from "#db/tasks/tasks.ts";
import { findProvisionerKeyByName } from "#db/templates/provisioners.ts";
import { findTemplate } from "#db/templates/templates.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import { findKey, findKeyByName } from "#db/users/api-keys.ts";
import { findDeployKey } from "#db/users/deploy-keys.ts";
import { findGitSshKey } from "#db/users/git-ssh-keys.ts";
import { findGroup } from "#db/users/groups.ts";
import { findMemberWithUser } from "#db/users/members.ts";
import { findDefaultOrganization, findOrganization, findOrganizationByName } from "#db/users/organizations.ts";
import { findUserSecret } from "#db/users/secrets.ts";
import { findUserSkill } from "#db/users/skills.ts";
import { findUser, findUserByName } from "#db/users/users.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findHomeBackup } from "#db/workspaces/home-backups.ts";
import { listStoredPortShares } from "#db/workspaces/port-shares.ts";
import { findSnapshot } from "#db/workspaces/snapshots.ts";
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { AuditAction } from "#schema/audit.ts";
import { findNoticeKind } from "#schema/notifications/kinds.ts";
import { EVERYONE } from "#schema/workspaces/acl.ts";
import { TRANSITIONS } from "#schema/workspaces/transition.ts";

export type TargetRequest = {
  readonly store: Store;
  readonly params: Readonly<Record<string, string>>;
  readonly user_id: string;
  readonly body?: unknown;
};

/** The resource's fields of the entry; `action` is set if the request's body determines it. */
export type AuditedResource = Omit<AuditEntry, "now" | "action" | "before" | "after"> & {
  readonly action?: AuditAction;
};

export type FindTarget = (requested: TargetRequest) => Promise<AuditedResource | undefined>;

export type AuditTarget = {
  readonly action: AuditAction;
  readonly find: FindTarget;
  /** True when only the body says what was attempted. The body is then kept until the response. */
  readonly needsBody: boolean;
};

type TargetOptions = { readonly needsBody?: boolean };

export const writes = (find: FindTarget, { needsBody = false }: TargetOptions = {}): AuditTarget => ({
  action: "write",
  find,
  needsBody,
});

export const deletes = (find: FindTarget, { needsBody = false }: TargetOptions = {}): AuditTarget => ({
  action: "delete",
  find,
  needsBody,
});

export const creates = (find: FindTarget, { needsBody = false }: TargetOptions = {}): AuditTarget => ({
  action: "create",
  find,
  needsBody,
});

/** Returns an ID in its stored form, or the zero UUID, which matches nothing, for an invalid one. */
export const getPathId = (params: TargetRequest["params"], name: string): string => {
  const text = params[name] ?? "";
  return isUuid(text) ? text.toLowerCase() : NIL_UUID;
};

const findPathUser = ({ store, params: { user = "" }, user_id }: TargetRequest) => {
  const id = user === "me" ? user_id : isUuid(user) ? user.toLowerCase() : undefined;
  return store.get(id ? findUser({ id }) : findUserByName({ username: user }));
};

const findPathOrganization = ({ store, params: { organization = "" } }: TargetRequest) => {
  if (isUuid(organization)) return store.get(findOrganization({ id: organization.toLowerCase() }));
  return store.get(
    organization === "default" ? findDefaultOrganization() : findOrganizationByName({ name: organization }),
  );
};

const findWorkspaceTarget = async (store: Store, id: string) => {
  const found = await store.get(findWorkspaceAccessRow({ id }));
  if (!found || found.deleted) return undefined;
  const { name, organization_id } = found;
  return { name, fields: { organization_id, workspace_id: id, resource_id: id, target: name } };
};

export const user: FindTarget = async (requested) => {
  const found = await findPathUser(requested);
  return found && { resource_type: "user", resource_id: found.id, target: found.username };
};

export const gitSshKey: FindTarget = async (requested) => {
  const owner = await findPathUser(requested);
  const found = owner && (await requested.store.get(findGitSshKey({ user_id: owner.id })));
  return found && { resource_type: "git_ssh_key", resource_id: found.user_id, target: found.public_key };
};

export const deployKey: FindTarget = async (requested) => {
  const owner = await findPathUser(requested);
  const id = getPathId(requested.params, "deploy_key");
  const found = owner && (await requested.store.get(findDeployKey({ user_id: owner.id, id })));
  return found && { resource_type: "deploy_key", resource_id: found.id, target: found.repository };
};

const findKeyTarget =
  (parameter: string): FindTarget =>
  async (requested) => {
    const owner = await findPathUser(requested);
    const found = owner && (await requested.store.get(findKey({ id: requested.params[parameter] ?? "" })));
    if (found?.user_id !== owner?.id || !found) return undefined;
    return { resource_type: "api_key", target: found.token_name || found.id, additional: { key_id: found.id } };
  };
export const apiKey = findKeyTarget("key");
export const session = findKeyTarget("session");

export const oauth2Grant = findKeyTarget("grant");

export const oauth2App: FindTarget = async ({ store, params }) => {
  const found = await store.get(findOAuth2App({ id: getPathId(params, "oauth2_app") }));
  return found && { resource_type: "oauth2_provider_app", resource_id: found.id, target: found.name, icon: found.icon };
};

export const oauth2Secret: FindTarget = async (requested) => {
  const app = await oauth2App(requested);
  const [app_id, id] = [getPathId(requested.params, "oauth2_app"), getPathId(requested.params, "oauth2_secret")];
  const found = app && (await requested.store.get(findOAuth2Secret({ app_id, id })));
  return found && { ...app, resource_type: "oauth2_provider_app_secret", resource_id: found.id };
};

export const namedToken: FindTarget = async (requested) => {
  const owner = await findPathUser(requested);
  const found =
    owner && (await requested.store.get(findKeyByName({ user_id: owner.id, name: requested.params.name ?? "" })));
  return found && { resource_type: "api_key", target: found.token_name, additional: { key_id: found.id } };
};

export const sessions: FindTarget = async (requested) => {
  const owner = await findPathUser(requested);
  return owner && { resource_type: "api_key", target: owner.username, additional: { sessions: "all" } };
};

export const skill: FindTarget = async (requested) => {
  const owner = await findPathUser(requested);
  const id = getPathId(requested.params, "skill");
  const found = owner && (await requested.store.get(findUserSkill({ user_id: owner.id, id })));
  return found && { resource_type: "user_skill", resource_id: found.id, target: found.name };
};

export const secret: FindTarget = async (requested) => {
  const owner = await findPathUser(requested);
  const name = requested.params.secret ?? "";
  const found = owner && (await requested.store.get(findUserSecret({ user_id: owner.id, name })));
  return found && { resource_type: "user_secret", resource_id: found.id, target: found.name };
};

export const organization: FindTarget = async (requested) => {
  const found = await findPathOrganization(requested);
  if (!found) return undefined;
  const { id, name, icon } = found;
  return { resource_type: "organization", resource_id: id, organization_id: id, target: name, icon };
};

export const group: FindTarget = async (requested) => {
  const id = getPathId(requested.params, "group");
  const found = await requested.store.get(findGroup({ id }));
  const organization = found ? undefined : await requested.store.get(findOrganization({ id }));
  if (!found && !organization) return undefined;
  const { name, avatar_url, organization_id } = found ?? { name: EVERYONE, avatar_url: "", organization_id: id };
  return { resource_type: "group", resource_id: id, organization_id, target: name, icon: avatar_url };
};

/** A user who would become a member; both the user and the organization exist. */
export const newMember: FindTarget = async (requested) => {
  const [organization, member] = [await findPathOrganization(requested), await findPathUser(requested)];
  if (!organization || !member) return undefined;
  return {
    resource_type: "organization_member",
    resource_id: member.id,
    organization_id: organization.id,
    target: member.username,
  };
};

export const member: FindTarget = async (requested) => {
  const found = await newMember(requested);
  if (!found) return undefined;
  const pair = { organization_id: found.organization_id ?? NIL_UUID, user_id: found.resource_id ?? NIL_UUID };
  return (await requested.store.get(findMemberWithUser(pair))) && found;
};

export const mcpServer: FindTarget = async (requested) => {
  const organization_id = (await findPathOrganization(requested))?.id ?? NIL_UUID;
  const found = await requested.store.get(
    findMcpServer({ organization_id, id: getPathId(requested.params, "mcp_server") }),
  );
  if (!found) return undefined;
  const { id, slug, icon } = found;
  return { resource_type: "mcp_server", resource_id: id, target: slug, icon, organization_id };
};

export const provisionerKey: FindTarget = async (requested) => {
  const organization_id = (await findPathOrganization(requested))?.id ?? NIL_UUID;
  const found = await requested.store.get(
    findProvisionerKeyByName({ organization_id, name: requested.params.key ?? "" }),
  );
  return found && { resource_type: "provisioner_key", resource_id: found.id, target: found.name, organization_id };
};

export const template: FindTarget = async ({ store, params }) => {
  const found = await store.get(findTemplate({ id: getPathId(params, "template") }));
  if (!found) return undefined;
  const { id, name, icon, organization_id } = found;
  return { resource_type: "template", resource_id: id, target: name, icon, organization_id };
};

export const templateVersion: FindTarget = async ({ store, params }) => {
  const found = await store.get(findTemplateVersion({ id: getPathId(params, "templateversion") }));
  if (!found) return undefined;
  const { id, name, organization_id } = found;
  return { resource_type: "template_version", resource_id: id, target: name, organization_id };
};

export const workspace: FindTarget = async ({ store, params }) => {
  const found = await findWorkspaceTarget(store, getPathId(params, "workspace"));
  return found && { ...found.fields, resource_type: "workspace" };
};

/** An existing port share, or the workspace for a new one. */
const makePortShareTarget =
  (isNew: boolean): FindTarget =>
  async ({ store, params, body }) => {
    const found = await findWorkspaceTarget(store, getPathId(params, "workspace"));
    if (!found) return undefined;
    const fields = { ...found.fields, resource_type: "port_share" } as const;
    const { agent_name, port } = (body ?? {}) as { agent_name?: unknown; port?: unknown };
    const shares = await store.all(listStoredPortShares({ workspace_id: found.fields.workspace_id }));
    const share = shares.find((one) => one.agent_name === agent_name && one.port === port);
    if (!share) return isNew ? fields : undefined;
    return {
      ...fields,
      target: `${found.name} ${share.agent_name}:${share.port}`,
      ...(isNew ? { action: "write" } : {}),
    };
  };
export const portShare = makePortShareTarget(false);
export const newPortShare = makePortShareTarget(true);

/** The snapshot that a rejected request would have created. Its ID is the zero UUID. */
export const newSnapshot: FindTarget = async ({ store, params }) => {
  const found = await findWorkspaceTarget(store, getPathId(params, "workspace"));
  return found && { ...found.fields, resource_type: "workspace_snapshot", resource_id: NIL_UUID };
};

export const snapshot: FindTarget = async ({ store, params }) => {
  const found = await findWorkspaceTarget(store, getPathId(params, "workspace"));
  const row = found && (await store.get(findSnapshot({ id: getPathId(params, "snapshot") })));
  if (!found || row?.workspace_id !== found.fields.workspace_id) return undefined;
  return { ...found.fields, resource_type: "workspace_snapshot", resource_id: row.id, target: row.name || found.name };
};

export const homeBackup: FindTarget = async ({ store, params }) => {
  const found = await findWorkspaceTarget(store, getPathId(params, "workspace"));
  const row = found && (await store.get(findHomeBackup({ id: getPathId(params, "backup") })));
  if (!found || row?.workspace_id !== found.fields.workspace_id) return undefined;
  return { ...found.fields, resource_type: "workspace_snapshot", resource_id: row.id, target: found.name };
};

const toBuildTarget = (name: string, id: string) =>
  ({ resource_type: "workspace_build", additional: { workspace_name: name, workspace_id: id } }) as const;

/** The build that a rejected request would have created. Its ID is the zero UUID; the requested transition is the action. */
export const newBuild: FindTarget = async ({ store, params, body }) => {
  const found = await findWorkspaceTarget(store, getPathId(params, "workspace"));
  if (!found) return undefined;
  const { transition } = (body ?? {}) as { transition?: unknown };
  const action = TRANSITIONS.find((one) => one === transition);
  const fields = { ...found.fields, ...toBuildTarget(found.name, found.fields.workspace_id), resource_id: NIL_UUID };
  return action ? { ...fields, action } : fields;
};

/** The restart that a rejected request would have started. Its build has the zero UUID. */
export const restart: FindTarget = async ({ store, params }) => {
  const found = await findWorkspaceTarget(store, getPathId(params, "workspace"));
  if (!found) return undefined;
  const build = toBuildTarget(found.name, found.fields.workspace_id);
  return { ...found.fields, ...build, resource_id: NIL_UUID, action: "start" };
};

export const workspaceBuild: FindTarget = async ({ store, params }) => {
  const row = await store.get(findBuild({ id: getPathId(params, "workspacebuild") }));
  const found = row && (await findWorkspaceTarget(store, row.workspace_id));
  if (!found) return undefined;
  return {
    ...found.fields,
    ...toBuildTarget(found.name, row.workspace_id),
    resource_id: row.id,
    build_reason: row.reason,
  };
};

export const task: FindTarget = async (requested) => {
  const owner = await findPathUser(requested);
  const { task: key = "" } = requested.params;
  const queryByName = owner && findTaskByName({ owner_id: owner.id, name: key });
  const query = isUuid(key) ? findTask({ id: key.toLowerCase() }) : queryByName;
  const found = query && (await requested.store.get(query))?.task;
  if (!found || found.owner_id !== owner?.id) return undefined;
  const { id, name, organization_id, workspace_id } = found;
  return { resource_type: "task", resource_id: id, target: name, organization_id, workspace_id };
};

export const chat: FindTarget = async ({ store, params }) => {
  const found = await store.get(findChatAccessRow({ id: getPathId(params, "chat") }));
  if (!found) return undefined;
  const { id, organization_id } = found;
  return { resource_type: "chat", resource_id: id, target: id.slice(0, 8), organization_id };
};

/** A kind of notification, which is defined in the code. */
export const notificationKind: FindTarget = async ({ params }) => {
  const kind = findNoticeKind(getPathId(params, "notification_template"));
  return kind && { resource_type: "notification_template", resource_id: kind.id, target: kind.name };
};
