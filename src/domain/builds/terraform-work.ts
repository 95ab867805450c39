// Adds what a Terraform build or dry run needs to its request: the template's files, and the owner's data that the template reads. Runs
// outside any mailbox, because tokens of linked accounts may have to be refreshed.
import { NIL_UUID } from "#base/ids.ts";
import { CommitError } from "#db/engine/store.ts";
import { findTaskPrompt } from "#db/tasks/tasks.ts";
import { findFile } from "#db/templates/files.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { openVariables } from "#db/templates/variables.ts";
import { findTemplateVersion, type TemplateVersionRow } from "#db/templates/versions.ts";
import { deleteKey, findKeyByName } from "#db/users/api-keys.ts";
import { readMemberships } from "#db/users/members.ts";
import { findUser, guardNotSuspended } from "#db/users/users.ts";
import { findBuild, findBuildByNumber, listBuildParameters } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { EVERYONE } from "#schema/workspaces/acl.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { ProvisionError, type ProvisionRequest } from "#src/provisioners/provisioner.ts";
import type { TemplateArchive, TerraformOwner, TerraformWork } from "#src/provisioners/terraform/work.ts";
import type { DomainContext } from "../context.ts";
import { loadGroupsById } from "../groups/acl.ts";
import { openGitSshKey, readGitSshKey } from "../users/git-ssh-key.ts";
import { createKey } from "../users/keys.ts";

type Deps = Pick<DomainContext, "store" | "clock" | "encryption" | "blobs" | "links">;

/** The parameter that contains the prompt of a task (facts/terraform 2.1). */
const PROMPT = "AI Prompt";
const SESSION_TTL_SECONDS = 7 * 86_400;
/**
 * The scopes that a command-line client with the owner's session token needs inside a workspace. Programs in the workspace, and people it is
 * shared with, can read the token, so it may not create anything that outlives it: keys, secrets, shares, roles, settings, template versions.
 */
const SESSION_SCOPES = [
  ...["workspace:create", "workspace:read", "workspace:update", "workspace:delete", "workspace:start"],
  ...["workspace:stop", "workspace:ssh", "workspace:application_connect", "template:read"],
  ...["template:use", "file:read", "provisioner_jobs:read"],
  ...["chat:create", "chat:read", "chat:update", "task:*", "ai:use", "api_key:read"],
  ...["user:read", "user:read_personal", "organization:read", "organization_member:read", "group:read"],
] as const;

/**
 * Returns the request with what Terraform needs; requests to other provisioners are unchanged. Throws ProvisionError when the files no
 * longer exist.
 */
export const addTerraformWork = async (deps: Deps, request: ProvisionRequest): Promise<ProvisionRequest> =>
  request.manifest.provisioner === "terraform" ? { ...request, terraform: await toWork(deps, request) } : request;

const toWork = async (deps: Deps, request: ProvisionRequest): Promise<TerraformWork> => {
  const { store, encryption } = deps;
  const { manifest, owner, parameters, build_id, build_number } = request;
  const build = await store.get(findBuild({ id: build_id }));
  const dryRun = build ? undefined : await store.get(findJob({ id: build_id }));
  const version_id = build?.template_version_id ?? dryRun?.input.template_version_id ?? "";
  const version = await store.get(findTemplateVersion({ id: version_id }));
  if (!version) throw new ProvisionError("The template version was deleted.");
  const template = await store.get(findTemplateEvenDeleted({ id: version.template_id ?? "" }));
  const before = build
    ? await store.get(findBuildByNumber({ workspace_id: build.workspace_id, build_number: build_number - 1 }))
    : undefined;
  const previous = before ? await store.all(listBuildParameters({ build_id: before.id })) : [];
  return {
    ...(await loadFiles(deps, version, manifest)),
    variables: openVariables(encryption, version),
    previous_parameters: Object.fromEntries(previous.map(({ name, value }) => [name, value])),
    // A dry run may use a version without a template, but the provider requires a name (facts/terraform 2.3).
    template: { id: template?.id ?? NIL_UUID, name: template?.name ?? version.name, version: version.name },
    owner: await loadOwner(deps, owner.id, version.organization_id),
    secrets: dryRun ? NO_SECRETS : await loadSecrets(deps, request),
    task: (await loadTask(deps, build?.workspace_id)) ?? { id: NIL_UUID, prompt: parameters[PROMPT] ?? "" },
    is_prebuild: owner.id === PREBUILDS_USER_ID,
  };
};

/** Returns a version's upload and the files kept by its import. */
export const loadFiles = async (
  { store, blobs }: Pick<Deps, "store" | "blobs">,
  version: Pick<TemplateVersionRow, "file_id">,
  manifest: Manifest,
): Promise<{ archive: TemplateArchive; cache: TemplateArchive | undefined }> => {
  const loadArchive = async (id: string): Promise<TemplateArchive | undefined> => {
    const file = await store.get(findFile({ id }));
    return file && { path: await blobs.getPath(file.hash), mimetype: file.mimetype };
  };
  const archive = await loadArchive(version.file_id);
  if (!archive) throw new ProvisionError("The template's upload was deleted.");
  const { cache_file } = manifest.terraform ?? {};
  return { archive, cache: cache_file === undefined ? undefined : await loadArchive(cache_file) };
};

/** Returns a person's data that a template may read, without secrets. */
export const loadOwner = async (
  { store }: Pick<Deps, "store">,
  user_id: string,
  organization_id: string,
): Promise<TerraformOwner> => {
  const user = await store.get(findUser({ id: user_id }));
  if (!user) throw new ProvisionError("The workspace's owner was deleted.");
  const { organizations, groups } = await readMemberships(store, user_id);
  const organizationRoles = organizations[organization_id] ?? [];
  const namedGroups = [...(await loadGroupsById(store, groups)).values()].filter(
    (group) => group.organization_id === organization_id && group.id !== organization_id,
  );
  return {
    id: user.id,
    username: user.username,
    full_name: user.name,
    email: user.email,
    login_type: user.login_type,
    groups: [EVERYONE, ...namedGroups.map(({ name }) => name)],
    roles: [
      ...["member", ...user.roles].map((name) => ({ name, org_id: "" })),
      ...["organization-member", ...organizationRoles].map((name) => ({ name, org_id: organization_id })),
    ],
  };
};

/** Returns the workspace's task, if any. */
const loadTask = async (
  { store }: Deps,
  workspace_id: string | undefined,
): Promise<TerraformWork["task"] | undefined> =>
  workspace_id === undefined ? undefined : store.get(findTaskPrompt({ workspace_id }));

const NO_SECRETS: TerraformWork["secrets"] = {
  ssh_public_key: "",
  ssh_private_key: "",
  session_token: "",
  accounts: {},
};

/** Returns only secrets that the template's files reference. A prebuilt workspace has no owner yet and gets none. */
const loadSecrets = async (deps: Deps, request: ProvisionRequest): Promise<TerraformWork["secrets"]> => {
  const { owner, manifest, no_user_data } = request;
  if (owner.id === PREBUILDS_USER_ID) return NO_SECRETS;
  if (no_user_data) {
    await createSessionToken(deps, request, false);
    return NO_SECRETS;
  }
  const needs = manifest.terraform?.needs ?? [];
  const keyPair = needs.includes("ssh_key") ? await readGitSshKey(deps, owner.id) : undefined;
  return {
    ssh_public_key: keyPair?.public_key ?? "",
    ssh_private_key: keyPair ? openGitSshKey(deps, keyPair) : "",
    session_token: await createSessionToken(deps, request, needs.includes("session_token")),
    accounts: await loadAccounts(deps, owner.id, manifest),
  };
};

/** Each start gets a new token; every build revokes the previous one. */
const createSessionToken = async (
  { store, clock }: Deps,
  { owner, workspace, transition }: ProvisionRequest,
  isNeeded: boolean,
): Promise<string> => {
  const token_name = `${owner.username}_${workspace.name}_session_token`;
  const oldKey = await store.get(findKeyByName({ user_id: owner.id, name: token_name }));
  const created =
    isNeeded && transition === "start"
      ? createKey({
          user_id: owner.id,
          login_type: "token",
          token_name,
          scopes: SESSION_SCOPES,
          lifetime_seconds: SESSION_TTL_SECONDS,
          now: clock.now(),
        })
      : undefined;
  const writes = [...(oldKey ? [deleteKey(oldKey.id)] : []), ...(created?.statements ?? [])];
  if (writes.length === 0) return "";
  const guards = created ? [guardNotSuspended({ id: owner.id })] : [];
  return store.commit([...guards, ...writes]).then(
    () => created?.token ?? "",
    (error) => {
      // The owner was suspended after the build had begun.
      if (error instanceof CommitError && error.reason === "stale") return "";
      throw error;
    },
  );
};

/** An account that is not linked, or whose provider is unavailable, has no token; the template decides whether it needs one. */
const loadAccounts = async ({ links }: Deps, user_id: string, manifest: Manifest): Promise<Record<string, string>> => {
  const tokens: Record<string, string> = {};
  for (const { id } of manifest.external_auth ?? []) {
    const provider = links.providers.get(id);
    const link = provider && (await links.getLiveToken(user_id, provider));
    if (link) tokens[id] = link.access_token;
  }
  return tokens;
};
