// Forks of a workspace: access checks, planning and presentation. The keeper of forks (actors/forks/keeper.ts) creates the planned
// workspaces.

import { CONTINUE_TIMER, FORK } from "#actors/forks/keeper.ts";
import type { NewBuild } from "#actors/workspace/decision.ts";
import { toRfc3339 } from "#base/clock.ts";
import { AppError, conflict, forbidden, invalid, notFound } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { uuid } from "#base/ids.ts";
import { trimEnd } from "#base/text/trim.ts";
import type { Statement } from "#db/engine/sql.ts";
import { setTimer } from "#db/engine/timers.ts";
import type { PlannedChat, PlannedCopy } from "#db/schema/forks.ts";
import type { PlannedBuild } from "#db/schema/workspaces.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { findBuild, listBuildParameters } from "#db/workspaces/builds.ts";
import {
  type ForkRow,
  findFork,
  insertFork,
  listBuildsOfFork,
  listChatsToCopy,
  listForks,
  listForksInProgress,
} from "#db/workspaces/forks.ts";
import {
  findWorkspace,
  findWorkspaceByName,
  type WorkspaceAccessRow,
  type WorkspaceRow,
} from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { type CreateFork, type Fork, type Forks, MAX_COPIED_CHATS, MAX_OPEN_FORKS } from "#schema/workspaces/fork.ts";
import { toJobStatus } from "#schema/workspaces/job.ts";
import {
  canCreateChat,
  canCreateWorkspaceFor,
  canManageTemplate,
  canUseTemplate,
  canUseWorkspace,
  isCoveredByKey,
} from "../access.ts";
import { loadVersion, planNewBuild, requireUsableManifest } from "../builds/new-build.ts";
import { hidesUserData } from "../builds/user-data.ts";
import type { DomainContext } from "../context.ts";
import { findNameProblem } from "./fields.ts";
import { loadHomeBackup, requireFetchable } from "./home-backups.ts";
import { findKeeper } from "./snapshots.ts";

const MAX_LISTED = 20;
const MAX_NAME_LENGTH = 32;

/**
 * Returns the new fork, whose files are being copied. Throws 400 if the workspace's files cannot be copied or a value is invalid, 403
 * without the right to work in the workspace or to create another one of its template, and 409 as the actor says and when a name is taken.
 */
export const createFork = async (
  ctx: DomainContext,
  workspace: WorkspaceAccessRow,
  body: CreateFork,
  caller: UserCaller,
): Promise<Fork> => presentFork(ctx, await beginFork(ctx, workspace, body, caller));

/** Options of a fork that is created for another purpose, such as a trial. */
type ForkOptions = {
  /** Returns the suffix of a copy's name; copies are numbered from 1. */
  readonly ending?: (number: number) => string;
  /** Returns the chats of the copy at this index; by default the caller's newest. */
  readonly chats?: (index: number) => readonly PlannedChat[];
  /** Returns statements for the batch of the fork. */
  readonly rows?: (fork: ForkRow) => readonly Statement[];
};

/** Returns the row of the new fork. Rejects like `createFork`. */
export const beginFork = async (
  ctx: DomainContext,
  workspace: WorkspaceAccessRow,
  body: CreateFork,
  caller: UserCaller,
  { ending = toForkSuffix, chats: planned, rows: makeRows = () => [] }: ForkOptions = {},
): Promise<ForkRow> => {
  const { store, clock } = ctx;
  // A fork gives access to all files of the workspace.
  if (!canUseWorkspace(caller, workspace)) throw forbidden("You may not work in this workspace.");
  const source = await store.get(findWorkspace({ id: workspace.id }));
  if (!source) throw notFound();
  const { provisioner, unsupported } = await findKeeper(ctx, workspace);
  if (unsupported !== "") throw new AppError("invalid", unsupported);
  const { home_backup_id } = body;
  if (home_backup_id !== undefined) requireFetchable(ctx, await loadHomeBackup(ctx, workspace, home_backup_id));
  const names = await chooseNames(ctx, source, { ...body, ending }, caller.user_id);
  const build = await planBuild(ctx, source, body, caller);
  if ((await store.all(listForksInProgress({ workspace_id: source.id }))).length >= MAX_OPEN_FORKS) {
    throw conflict(
      `At most ${MAX_OPEN_FORKS} forks of a workspace can be created at a time. Try again when one is ready.`,
    );
  }
  const newest = planned || body.chats === false ? [] : await findChats(ctx, source, caller);
  const chats = planned ?? (() => newest.map((chat) => ({ ...chat, chat_id: uuid() })));
  const first_key = await store.reserve("jobs", names.length);
  const now = clock.now();
  const row: ForkRow = {
    id: uuid(),
    workspace_id: source.id,
    organization_id: source.organization_id,
    owner_id: caller.user_id,
    snapshot_id: uuid(),
    status: "copying",
    error: "",
    copies: names.map((name, index) => ({
      workspace_id: uuid(),
      name,
      build: { ...build, id: uuid(), job_id: uuid(), job_key: first_key + index },
      chats: chats(index),
      ...(caller.is_application ? { is_unscheduled: true } : {}),
    })),
    problems: {},
    created_at: now,
    updated_at: now,
  };
  const rows = [insertFork(row), setTimer(FORK, row.id, CONTINUE_TIMER, now), ...makeRows(row)];
  const base = { name: "", reason: "fork", created_by: caller.user_id, provisioner } as const;
  const backup = home_backup_id === undefined ? {} : { home_backup_id: home_backup_id.toLowerCase() };
  await ctx.workspaces.ask(source.id, "createSnapshot", { id: row.snapshot_id, ...base, ...backup, rows });
  failpoint("fork_asked");
  ctx.forks.wait(row.id);
  return row;
};

const toForkSuffix = (number: number): string => (number === 1 ? "-fork" : `-fork-${number}`);

/** Plans the first build of each copy: like the workspace's latest one, with a version that is usable now. */
const planBuild = async (
  ctx: DomainContext,
  source: WorkspaceRow,
  { start = false }: CreateFork,
  caller: UserCaller,
): Promise<PlannedBuild> => {
  const { store } = ctx;
  const last = await store.get(findBuild({ id: source.latest_build_id }));
  const template = await store.get(findTemplateEvenDeleted({ id: source.template_id }));
  if (!last || !template) throw notFound();
  if (template.deleted) throw conflict("The template of the workspace was deleted.");
  if (!canUseTemplate(caller, template)) throw forbidden("You may not use the template of this workspace.");
  if (!canCreateWorkspaceFor(caller, template.organization_id, caller.user_id)) {
    throw forbidden("You may not create workspaces here.");
  }
  if (!(template.organization_id in caller.organizations)) {
    throw new AppError("invalid", "You are not a member of the template's organization.");
  }
  if (template.deprecation_message !== "") {
    throw new AppError("invalid", "The template is deprecated.", { detail: template.deprecation_message });
  }
  const mustBeActive = template.require_active_version && !canManageTemplate(caller, template);
  const version = await loadVersion(store, mustBeActive ? template.active_version_id : last.template_version_id);
  if (!version) throw notFound();
  const manifest = requireUsableManifest(version, "not_acceptable");
  const values = await store.all(listBuildParameters({ build_id: last.id }));
  const previous = Object.fromEntries(values.map(({ name, value }) => [name, value]));
  // A key for one workspace does not open another.
  const mayEnter = caller.only_workspace === undefined;
  const no_user_data = hidesUserData({ by: "person", transition: "start", mayEnter, isChanged: true }, false);
  const input = { owner_id: caller.user_id, initiator_id: caller.user_id, reason: "initiator", no_user_data };
  // Always checked as a start: a workspace that could not be started is not created.
  const planned: NewBuild = await planNewBuild(ctx, version, manifest, { ...input, transition: "start" }, previous);
  return start ? planned : { ...planned, transition: "stop" };
};

/** Chooses free, distinct names for the copies. Rejects given names with 400 or 409. */
const chooseNames = async (
  { store }: DomainContext,
  source: WorkspaceRow,
  { count, names, ending }: CreateFork & Required<Pick<ForkOptions, "ending">>,
  owner_id: string,
): Promise<readonly string[]> => {
  const isTaken = async (name: string): Promise<boolean> => {
    const found = await store.get(findWorkspaceByName({ owner_id, name }));
    return found !== undefined && !found.deleted;
  };
  if (names) {
    if (count !== undefined && count !== names.length) {
      throw invalid("Validation failed.", [{ field: "count", detail: "must be the number of names" }]);
    }
    const seen = new Set<string>();
    for (const name of names) {
      const problem = findNameProblem(name) ?? (seen.has(name.toLowerCase()) ? "is given twice" : undefined);
      if (problem !== undefined)
        throw invalid("Validation failed.", [{ field: "names", detail: `${name} ${problem}` }]);
      if (await isTaken(name)) {
        throw conflict("A workspace with this name already exists.", [{ field: "names", detail: `${name} is taken` }]);
      }
      seen.add(name.toLowerCase());
    }
    return names;
  }
  const found: string[] = [];
  for (let number = 1; found.length < (count ?? 1); number++) {
    const suffix = ending(number);
    const name = `${trimEnd(source.name.slice(0, MAX_NAME_LENGTH - suffix.length), "-")}${suffix}`;
    if (!(await isTaken(name))) found.push(name);
  }
  return found;
};

const findChats = async ({ store }: DomainContext, { id, organization_id }: WorkspaceRow, caller: UserCaller) => {
  if (!canCreateChat(caller, organization_id)) return [];
  const query = { workspace_id: id, owner_id: caller.user_id, limit: MAX_COPIED_CHATS };
  const rows = await store.all(listChatsToCopy(query));
  return rows.map(({ id: from_chat_id, up_to }) => ({ from_chat_id, up_to: Number(up_to) }));
};

/** Forks are their creator's. Their copies are other workspaces, which a key for one workspace does not cover (rule ID-28). */
const canSeeFork = (caller: UserCaller, { owner_id, copies }: ForkRow): boolean =>
  owner_id === caller.user_id && copies.every(({ workspace_id }) => isCoveredByKey(caller, { id: workspace_id }));

/** Returns the caller's forks of a workspace, newest first. */
export const readForks = async (ctx: DomainContext, { id }: WorkspaceAccessRow, caller: UserCaller): Promise<Forks> => {
  const rows = await ctx.store.all(listForks({ workspace_id: id, limit: MAX_LISTED }));
  const ownForks = rows.filter((row) => canSeeFork(caller, row));
  return { forks: await Promise.all(ownForks.map((row) => presentFork(ctx, row))) };
};

/** Returns the fork with this ID of this workspace. Throws 404, also for other people's forks. */
export const readFork = async (
  ctx: DomainContext,
  { id }: WorkspaceAccessRow,
  fork: string,
  caller: UserCaller,
): Promise<Fork> => {
  const row = await ctx.store.get(findFork({ id: fork.toLowerCase() }));
  if (row?.workspace_id !== id || !canSeeFork(caller, row)) throw notFound();
  return presentFork(ctx, row);
};

const presentFork = async ({ store }: DomainContext, row: ForkRow): Promise<Fork> => {
  const { id, workspace_id, owner_id, status, error, problems } = row;
  const builds = await store.all(listBuildsOfFork({ restored_snapshot_id: row.snapshot_id }));
  const names = new Map(builds.map((one) => [one.workspace_id, one.name]));
  const toCopyStatus = ({ workspace_id: copy }: PlannedCopy): Pick<Fork["copies"][number], "status" | "error"> => {
    if (status === "failed" || problems[copy] !== undefined) {
      return { status: "failed", error: problems[copy] ?? error };
    }
    const copyBuilds = builds.filter((one) => one.workspace_id === copy);
    const newest = copyBuilds.toSorted((a, b) => b.build_number - a.build_number)[0];
    if (!newest) return { status: "waiting", error: "" };
    if (newest.deleted) return { status: "deleted", error: "" };
    const job = copyBuilds.some((one) => toJobStatus(one) === "succeeded") ? "succeeded" : toJobStatus(newest);
    if (job === "succeeded") return { status: "ready", error: "" };
    if (job === "failed" || job === "canceled")
      return { status: "failed", error: newest.error || "The build was canceled." };
    return { status: "creating", error: "" };
  };
  return {
    id,
    workspace_id,
    owner_id,
    status,
    error,
    copies: row.copies.map((copy) => ({
      workspace_id: copy.workspace_id,
      name: names.get(copy.workspace_id) ?? copy.name,
      ...toCopyStatus(copy),
      chats: copy.chats.map(({ from_chat_id, chat_id }) => ({ from_chat_id, chat_id })),
    })),
    created_at: toRfc3339(row.created_at),
    updated_at: toRfc3339(row.updated_at),
  };
};
