// Creates a build of an existing workspace: start, stop or delete (facts/platform 9.4).

import type { NewBuild } from "#actors/workspace/decision.ts";
import { AppError, conflict, forbidden, invalidField, notFound } from "#base/errors.ts";
import { TurnThrottle } from "#base/loop-pacing.ts";
import { trimEnd } from "#base/text/trim.ts";
import type { Statement } from "#db/engine/sql.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { findTemplateEvenDeleted, type TemplateRow } from "#db/templates/templates.ts";
import { sealState } from "#db/workspaces/build-state.ts";
import { type BuildRow, findBuild, listBuildParameters } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import type { SnapshotRow } from "#db/workspaces/snapshots.ts";
import { findBuildView } from "#db/workspaces/views.ts";
import { findWorkspace, findWorkspaceByName, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { hidePlan } from "#schema/templates/repository.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { type Build, CALLER_REASONS, type CreateBuild, type RestartWorkspace } from "#schema/workspaces/build.ts";
import { toJobStatus } from "#schema/workspaces/job.ts";
import {
  canDeleteWorkspace,
  canManageTemplate,
  canManageTemplates,
  canSeeWorkspace,
  canStartStop,
  canUseWorkspace,
} from "../access.ts";
import type { DomainContext } from "../context.ts";
import { checkOwnerBelongs, loadVersion, planNewBuild, requireUsableManifest } from "./new-build.ts";
import { presentBuilds } from "./present.ts";
import { checkPushed, parseState } from "./state-text.ts";
import { hidesUserData } from "./user-data.ts";

/** Hundreds of builds may be requested at the same time. */
const pace = new TurnThrottle();

type BuildOptions = {
  /** Additional statements for the build's batch. */
  readonly extraWrites?: readonly Statement[];
  /** The caller did not request the start: someone connected, or a model asked. The agents then get no more access than before. */
  readonly isOnBehalf?: boolean;
  /** The build that must still be the latest; otherwise rejected with 409. */
  readonly after?: string;
};

/** Returns the new pending build. Rejects with 400, 403, 404, 406 and 409 as in facts/platform 9.4. */
export const createBuild = async (
  ctx: DomainContext,
  workspace_id: string,
  body: CreateBuild,
  caller: UserCaller,
  { extraWrites, isOnBehalf = false, after }: BuildOptions = {},
): Promise<Build> => {
  const target = await findBuildTarget(ctx, workspace_id, body, caller);
  if (after !== undefined && target.last.id !== after) throw conflict("Another build was started in the meantime.");
  const build = await planBuild(ctx, target, body, caller);
  const no_user_data = hidesUserData({ by: "server" }, target.last.no_user_data);
  const onBehalf = isOnBehalf ? { no_user_data, approves_schedule: false } : {};
  return startBuild(ctx, target, { ...build, ...onBehalf }, caller, extraWrites);
};

/**
 * Stops a running workspace and starts it again, with another version or other values if the body requests it; starts one that is not
 * running. Both builds are planned now, and the second starts when the first has ended, even if the caller is no longer there. Returns the
 * first build.
 */
export const restartWorkspace = async (
  ctx: DomainContext,
  workspace_id: string,
  body: RestartWorkspace,
  caller: UserCaller,
): Promise<Build> => {
  const target = await findBuildTarget(ctx, workspace_id, { transition: "start" }, caller);
  const start = await planBuild(ctx, target, { ...body, transition: "start" }, caller);
  if (!(await isRunning(ctx, target))) return startBuild(ctx, target, start, caller);
  const reason = body.reason === undefined ? {} : { reason: body.reason };
  const stop = await planBuild(ctx, target, { transition: "stop", ...reason }, caller);
  return startBuild(ctx, target, { ...stop, followed_by: start }, caller);
};

/**
 * Replaces the workspace's files with a snapshot, its own or that of a kept trial way: a stop with the restore, followed by a start if the
 * workspace was running. Returns the first build. Rejects with 409 when the snapshot is not ready.
 */
export const restoreBuild = async (
  ctx: DomainContext,
  workspace_id: string,
  snapshot: SnapshotRow,
  caller: UserCaller,
): Promise<Build> => {
  if (snapshot.status !== "ready")
    throw conflict(`The snapshot is ${snapshot.status}; only a ready one can be restored.`);
  const target = await findBuildTarget(ctx, workspace_id, { transition: "stop" }, caller);
  const { workspace } = target;
  await checkOwnerBelongs(ctx.store, workspace);
  const stop = await planBuild(ctx, target, { transition: "stop" }, caller);
  const followUp = (await isRunning(ctx, target))
    ? { followed_by: await planBuild(ctx, target, { transition: "start" }, caller) }
    : {};
  const restore = { workspace_id: snapshot.workspace_id, snapshot_id: snapshot.id, once: true };
  const auditEntry = insertAudit({
    now: ctx.clock.now(),
    action: "write",
    resource_type: "workspace_snapshot",
    resource_id: snapshot.id,
    target: snapshot.name || workspace.name,
    organization_id: workspace.organization_id,
    workspace_id: workspace.id,
    after: { restored_by_build: stop.id },
  });
  return startBuild(ctx, target, { ...stop, ...followUp, restore }, caller, [auditEntry]);
};

/**
 * Restores a deleted workspace from the trash, stopped, under its name or the next free one. Returns the build that stops it. Rejects with
 * 409 when it is not in the trash.
 */
export const restoreDeleted = async (
  ctx: DomainContext,
  workspace_id: string,
  name: string | undefined,
  caller: UserCaller,
): Promise<Build> => {
  const target = await findBuildTarget(ctx, workspace_id, { transition: "stop" }, caller, true);
  const { workspace, last, template } = target;
  await checkOwnerBelongs(ctx.store, workspace);
  if (!workspace.deleted || workspace.trashed_until === null) throw conflict("The workspace is not in the trash.");
  if (template.deleted) throw conflict("The template of the workspace was deleted.");
  const build = await planBuild(ctx, target, { transition: "stop" }, caller);
  const freeName = name ?? (await findFreeName(ctx, workspace));
  await ctx.workspaces.ask(workspace.id, "restoreDeleted", { name: freeName, build, after: last.id });
  return presentBuild(ctx, build, caller);
};

const MAX_NAME_TRIES = 50;
const MAX_NAME = 32;

/** Returns the name, with a number if it is taken. */
const findFreeName = async ({ store }: DomainContext, { owner_id, name }: WorkspaceRow): Promise<string> => {
  for (let number = 1; number <= MAX_NAME_TRIES; number++) {
    const suffix = number === 1 ? "" : `-${number}`;
    const candidate = `${trimEnd(name.slice(0, MAX_NAME - suffix.length), "-")}${suffix}`;
    const existing = await store.get(findWorkspaceByName({ owner_id, name: candidate }));
    if (!existing || existing.deleted) return candidate;
  }
  throw conflict("The name of the workspace is taken. Choose another one.");
};

type BuildTarget = { readonly workspace: WorkspaceRow; readonly last: BuildRow; readonly template: TemplateRow };

const isRunning = async ({ store }: DomainContext, { last }: BuildTarget): Promise<boolean> => {
  const job = await store.get(findJob({ id: last.job_id }));
  return last.transition === "start" && job !== undefined && toJobStatus(job) === "succeeded";
};

/** Returns the workspace for a permitted build, with its previous build. */
const findBuildTarget = async (
  { store }: DomainContext,
  workspace_id: string,
  body: CreateBuild,
  caller: UserCaller,
  isRestore = false,
): Promise<BuildTarget> => {
  await pace.next();
  const workspace = await store.get(findWorkspace({ id: workspace_id.toLowerCase() }));
  if (!workspace || !canSeeWorkspace(caller, workspace)) throw notFound();
  checkInput(body);
  checkRights(body, workspace, caller);
  const isInTrash = workspace.trashed_until !== null && body.transition === "delete" && body.permanent === true;
  if (workspace.deleted && !isInTrash && !isRestore) throw conflict("The workspace has been deleted.");
  const last = await store.get(findBuild({ id: workspace.latest_build_id }));
  const template = await store.get(findTemplateEvenDeleted({ id: workspace.template_id }));
  if (!last || !template) throw notFound();
  return { workspace, last, template };
};

const planBuild = async (
  ctx: DomainContext,
  { workspace, last, template }: BuildTarget,
  body: CreateBuild,
  caller: UserCaller,
): Promise<NewBuild> => {
  const { store } = ctx;
  const followsActive = template.require_active_version || workspace.automatic_updates === "always";
  const defaultVersionId =
    body.transition === "start" && followsActive ? template.active_version_id : last.template_version_id;
  const version = await loadVersion(store, body.template_version_id ?? defaultVersionId);
  if (!version || version.row.template_id !== workspace.template_id) throw notFound();
  const requiresActive =
    body.transition === "start" && template.require_active_version && !canManageTemplate(caller, template);
  if (requiresActive && version.row.id !== template.active_version_id)
    throw forbidden("The template requires its active version.");
  const manifest = requireUsableManifest(version, "not_acceptable", body.transition);
  const values = await store.all(listBuildParameters({ build_id: last.id }));
  const previous = Object.fromEntries(values.map(({ name, value }) => [name, value]));
  const mayEnter = canUseWorkspace(caller, workspace);
  // Callers who may not enter the workspace see a link instead of a repository's plan. The plan is unchanged if they send the link back.
  const isKeptPlan = ({ name, value }: { readonly name: string; readonly value: string }): boolean =>
    !mayEnter && previous[name]?.startsWith("{") === true && value === hidePlan(previous[name]);
  const rich_parameter_values = body.rich_parameter_values?.filter((one) => !isKeptPlan(one)) ?? [];
  const isChanged = version.row.id !== last.template_version_id || hasChangedInput({ ...body, rich_parameter_values });
  const input = {
    ...body,
    rich_parameter_values,
    owner_id: workspace.owner_id,
    initiator_id: caller.user_id,
    reason: toReason(body),
    no_user_data: hidesUserData({ by: "person", transition: body.transition, mayEnter, isChanged }, last.no_user_data),
    ...sealStateOverride(ctx, last, manifest.provisioner, body),
  };
  const build = await planNewBuild(ctx, version, manifest, input, previous);
  return { ...build, approves_schedule: body.transition === "start" && mayEnter };
};

const hasChangedInput = ({ rich_parameter_values = [], template_version_preset_id, state }: CreateBuild): boolean =>
  rich_parameter_values.length > 0 || template_version_preset_id !== undefined || !!state;

const startBuild = async (
  ctx: DomainContext,
  { workspace, last }: BuildTarget,
  build: NewBuild,
  caller: UserCaller,
  extraWrites: readonly Statement[] = [],
): Promise<Build> => {
  await ctx.workspaces.ask(workspace.id, "createBuild", { build, after: last.id, beside: extraWrites });
  return presentBuild(ctx, build, caller);
};

const presentBuild = async (ctx: DomainContext, build: NewBuild, caller: UserCaller): Promise<Build> => {
  const view = await ctx.store.get(findBuildView({ id: build.id }));
  const [presented] = view ? await presentBuilds(ctx, [view], caller.compat) : [];
  if (!presented) throw notFound();
  return presented;
};

const checkInput = (body: CreateBuild): void => {
  if (body.orphan && body.transition !== "delete") throw invalidField("orphan", "is only for the transition delete");
  if (body.permanent && body.transition !== "delete") {
    throw invalidField("permanent", "is only for the transition delete");
  }
  if (body.orphan && body.state) throw invalidField("orphan", "is not possible together with state");
  if (body.dry_run) throw invalidField("dry_run", "is not supported for builds of a workspace");
  if (body.state !== undefined && parseState(body.state) === undefined)
    throw invalidField("state", "must be base64 of UTF-8 text");
};

/** Returns the state that replaces the previous build's, encrypted. */
const sealStateOverride = (
  { encryption }: Pick<DomainContext, "encryption">,
  last: BuildRow,
  provisioner: string,
  { state }: CreateBuild,
): { state_override?: string } => {
  const text = state ? parseState(state) : undefined;
  if (text === undefined) return {};
  checkPushed(encryption, { provisioner, text, before: last });
  const sealed = sealState(encryption, { workspace_id: last.workspace_id, provisioner }, text);
  return sealed === null ? {} : { state_override: sealed };
};

const checkRights = (body: CreateBuild, workspace: WorkspaceRow, caller: UserCaller): void => {
  const isAllowed = body.transition === "delete" ? canDeleteWorkspace : canStartStop;
  if (!isAllowed(caller, workspace)) throw forbidden(`You may not ${body.transition} this workspace.`);
  if (canManageTemplates(caller, workspace.organization_id)) return;
  if (body.orphan) throw forbidden("Only template administrators can delete a workspace without its resources.");
  if (body.state) throw forbidden("Only template administrators can replace the state of a build.");
  if (body.log_level !== "debug") return;
  throw new AppError("forbidden", "Forbidden.", { detail: "Only template administrators can request debug logs." });
};

const toReason = ({ reason, transition }: CreateBuild): string =>
  transition !== "delete" && CALLER_REASONS.some((known) => known === reason) ? (reason as string) : "initiator";
