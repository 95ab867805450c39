// Creates a workspace: runs all checks, then its actor writes it with its first build (facts/platform 3.2).

import { createWorkspaceRow } from "#actors/workspace/new-row.ts";
import { AppError, forbidden, invalidField, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import { findTemplate, findTemplateEvenDeleted, type TemplateRow } from "#db/templates/templates.ts";
import { findOrganization } from "#db/users/organizations.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { CreateWorkspace, Workspace } from "#schema/workspaces/workspace.ts";
import type { ParameterValue } from "#src/provisioners/parameters.ts";
import {
  canCreateWorkspaceFor,
  canManageTemplate,
  canReadTemplates,
  canUseTemplate,
  canUseWorkspace,
} from "../access.ts";
import { loadVersion, planNewBuild, requireUsableManifest, type VersionWithStatus } from "../builds/new-build.ts";
import { hidesUserData } from "../builds/user-data.ts";
import type { DomainContext } from "../context.ts";
import { findRepositoryParameter } from "../repositories/planned.ts";
import { ensureRepositoryTemplate, findRepositoryOrganization } from "../repositories/template.ts";
import type { KnownUser } from "../users/find.ts";
import { claimPrebuild } from "./claim.ts";
import { validateWorkspaceFields, type WorkspaceFields } from "./fields.ts";
import { readWorkspace } from "./present.ts";

export type Creation = {
  readonly caller: UserCaller;
  /** The future owner. */
  readonly owner: KnownUser;
  /** The organization in the path; the template must belong to it. */
  readonly organization_id?: string;
  readonly body: CreateWorkspace;
  /** The task the workspace is for. `prepare` checks what depends on the template, and returns what creates its rows for the same batch. */
  readonly task?: { readonly id: string; readonly prepare: (template: TemplateRow) => Promise<TaskRows> };
};

export type TaskRows = (workspace_id: string) => readonly Statement[];

/** Returns the new workspace with its pending first build. Rejects with 400, 403, 404 and 409 as in facts/platform 3.2. */
export const createWorkspace = async (ctx: DomainContext, creation: Creation): Promise<Workspace> => {
  const { caller, owner, organization_id, body, task } = creation;
  const { clock } = ctx;
  const fields = validateWorkspaceFields(body);
  if (caller.is_application) rejectAutomaticStarts(fields);
  const { template, version } = await resolveTemplate(ctx, caller, await addRepositoryTemplate(ctx, creation));
  if (organization_id !== undefined && template.organization_id !== organization_id) throw notFound();
  if (!canCreateWorkspaceFor(caller, template.organization_id, owner.id)) {
    throw forbidden("You may not create workspaces for this user here.");
  }
  requireMember(owner, template.organization_id);
  if (template.deprecation_message !== "") {
    throw new AppError("invalid", "The template is deprecated.", { detail: template.deprecation_message });
  }
  if (fields.ttl_ms !== null && !template.allow_user_autostop) {
    throw invalidField("ttl_ms", "the template does not allow its workspaces to set autostop");
  }
  if (fields.autostart_schedule !== null && !template.allow_user_autostart) {
    throw invalidField("schedule", "the template does not allow autostart");
  }
  if (
    template.require_active_version &&
    version.row.id !== template.active_version_id &&
    !canManageTemplate(caller, template)
  )
    throw forbidden("The template requires its active version.");
  const taskRows = await task?.prepare(template);
  const manifest = requireUsableManifest(version, "invalid");
  const { template_version_preset_id } = body;
  const target = { owner_id: owner.id, organization_id: template.organization_id };
  const id = uuid();
  const mayEnter = canUseWorkspace(caller, { ...target, id, user_acl: {}, group_acl: {} });
  const no_user_data = hidesUserData({ by: "person", transition: "start", mayEnter, isChanged: true }, false);
  const input = {
    ...(await resolveValues(ctx, manifest, body, no_user_data ? caller.user_id : owner.id)),
    template_version_preset_id,
    owner_id: owner.id,
    initiator_id: caller.user_id,
    no_user_data,
  };
  const build = await planNewBuild(ctx, version, manifest, { ...input, transition: "start", reason: "initiator" });
  const now = clock.now();
  const settings = {
    ...fields,
    ttl_ms: fields.ttl_ms ?? (template.default_ttl_ms || null),
    ...target,
    template_id: template.id,
    task_id: task?.id ?? null,
  };
  const workspace = createWorkspaceRow(settings, { id, latest_build_id: build.id, now });
  const makeTaskRows: TaskRows = (workspace_id) => taskRows?.(workspace_id) ?? [];
  const claimed = await claimPrebuild(ctx, manifest, workspace, build, makeTaskRows);
  if (claimed === undefined) {
    ctx.workspaces.expect(id, workspace.part);
    await ctx.workspaces.ask(id, "create", { workspace, build, beside: makeTaskRows(id) });
  }
  const created = await readWorkspace(ctx, claimed ?? id, caller);
  if (!created) throw notFound();
  return created;
};

/** Rejects with 403 for an application: a later start would outlive its authorization (rule OA-23). */
const rejectAutomaticStarts = ({ autostart_schedule, automatic_updates }: WorkspaceFields): void => {
  if (autostart_schedule === null && automatic_updates === "never") return;
  throw forbidden("An application cannot set a workspace's autostart schedule or automatic updates.");
};

/** Fills in the built-in template for a repository when the caller names none. */
const addRepositoryTemplate = async (
  ctx: DomainContext,
  { caller, owner, organization_id, body }: Creation,
): Promise<CreateWorkspace> => {
  if (!body.repository || body.template_id !== undefined || body.template_version_id !== undefined) return body;
  const organization =
    organization_id === undefined
      ? await findRepositoryOrganization(ctx, owner)
      : await ctx.store.get(findOrganization({ id: organization_id }));
  if (!organization) throw notFound();
  if (!canCreateWorkspaceFor(caller, organization.id, owner.id)) {
    throw forbidden("You may not create workspaces for this user here.");
  }
  requireMember(owner, organization.id);
  const template = await ensureRepositoryTemplate(ctx, organization);
  if (!canUseTemplate(caller, template)) {
    throw invalidField(
      "repository",
      `needs the template "${template.name}", which is not shared with you; choose another one that takes a repository`,
    );
  }
  return { ...body, template_id: template.id };
};

const requireMember = (owner: KnownUser, organization_id: string): void => {
  if (organization_id in owner.organizations) return;
  throw new AppError("invalid", "The user is not a member of the template's organization.");
};

/** Returns the given values, with the plan of the repository in the parameter that takes one. */
const resolveValues = async (
  { repositories }: DomainContext,
  manifest: Manifest,
  { rich_parameter_values: given = [], repository: requested }: CreateWorkspace,
  reader_id: string,
): Promise<{ readonly rich_parameter_values: ParameterValue[]; readonly repository_plan?: string }> => {
  if (!requested) return { rich_parameter_values: given };
  const parameter = findRepositoryParameter(manifest);
  if (!parameter) throw invalidField("repository", "the template takes no repository");
  const plan = await repositories.plan(reader_id, { requested, field: "repository" });
  const value = JSON.stringify(plan);
  return { rich_parameter_values: [...given, { name: parameter.name, value }], repository_plan: value };
};

const resolveTemplate = async (
  { store }: DomainContext,
  caller: UserCaller,
  body: CreateWorkspace,
): Promise<{ template: TemplateRow; version: VersionWithStatus }> => {
  const notUsable = (field: string): AppError => invalidField(field, "does not exist, or you may not use it");
  if (body.template_id !== undefined) {
    const template = await store.get(findTemplate({ id: body.template_id.toLowerCase() }));
    if (!template || !canUseTemplate(caller, template)) throw notUsable("template_id");
    const version = await loadVersion(store, template.active_version_id);
    if (!version) throw notUsable("template_id");
    return { template, version };
  }
  const version = await loadVersion(store, body.template_version_id ?? "");
  if (!version || !canReadTemplates(caller, version.row.organization_id)) throw notUsable("template_version_id");
  if (version.row.template_id === null) {
    throw invalidField("template_version_id", "belongs to no template");
  }
  const template = await store.get(findTemplateEvenDeleted({ id: version.row.template_id }));
  if (template && !canUseTemplate(caller, template)) throw notUsable("template_version_id");
  if (!template || template.deleted) throw notFound();
  return { template, version };
};
