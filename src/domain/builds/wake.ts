// Wake on connect: starts a stopped workspace because someone connects to it. Simultaneous connections share one build. Callers decide what
// counts as a connection; this file decides who can start the workspace with one (docs/wake-and-idle.md; rules WO-1 to WO-9).
import { isDormant } from "#actors/workspace/dormancy.ts";
import { AppError, conflict, forbidden, notFound } from "#base/errors.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { findUser } from "#db/users/users.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { findWorkspaceAccessRow, type WorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { CreateBuild } from "#schema/workspaces/build.ts";
import { toJobStatus } from "#schema/workspaces/job.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import type { WakeLevel } from "#schema/workspaces/wake.ts";
import { canStartStop } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { loadCaller } from "../users/as-caller.ts";
import { createBuild } from "./create.ts";

/** The state of a workspace by its latest build. */
export type WakeState = "running" | "starting" | "stopping" | "stopped" | "failed" | "dormant" | "deleted";

export type WakeStatus = {
  readonly state: WakeState;
  /** The build that determines the state, including a start that was just created. */
  readonly build_id: string;
};

export type WakeInput = {
  /** Who connects; undefined for an anonymous visitor. */
  readonly caller: UserCaller | undefined;
  /** True for a visitor who may open the app but not start the workspace, unless the template allows it. */
  readonly isVisitor?: boolean;
  readonly reason?: CreateBuild["reason"];
};

/** Returns the state of a workspace. Reads by key. */
export const findWakeState = async (
  { store }: Pick<DomainContext, "store">,
  workspace: Pick<WorkspaceAccessRow, "latest_build_id" | "dormant_at" | "deleted">,
): Promise<WakeStatus> => {
  const build = await store.get(findBuild({ id: workspace.latest_build_id }));
  const job = build && (await store.get(findJob({ id: build.job_id })));
  if (!build || !job) throw notFound();
  const toStatus = (state: WakeState): WakeStatus => ({ state, build_id: build.id });
  if (workspace.deleted || build.transition === "delete") return toStatus("deleted");
  if (isDormant(workspace)) return toStatus("dormant");
  const status = toJobStatus(job);
  const isStart = build.transition === "start";
  if (status === "succeeded") return toStatus(isStart ? "running" : "stopped");
  if (job.completed_at !== null) return toStatus("failed");
  return toStatus(isStart ? "starting" : "stopping");
};

/**
 * Starts the workspace if it is stopped, and returns its state. Starts it only if its last stop succeeded. Throws 403 or 409 with the
 * reason when this connection may not start it, and whatever error the build is rejected with.
 */
export const wakeWorkspace = async (ctx: DomainContext, id: string, input: WakeInput): Promise<WakeStatus> => {
  const workspace = await ctx.store.get(findWorkspaceAccessRow({ id }));
  if (!workspace) throw notFound();
  const found = await findWakeState(ctx, workspace);
  if (found.state !== "stopped") return found;
  const initiator = await checkWake(ctx, workspace, input);
  const { wakes } = ctx;
  const started = wakes.get(id) ?? startWorkspace(ctx, { id, after: found.build_id }, initiator, input.reason);
  wakes.set(id, started);
  try {
    const build_id = await started;
    if (build_id === undefined)
      return await findWakeState(ctx, (await ctx.store.get(findWorkspaceAccessRow({ id }))) ?? workspace);
    return { state: "starting", build_id };
  } finally {
    if (wakes.get(id) === started) wakes.delete(id);
  }
};

/**
 * Returns the new build's ID; undefined if another caller has started or changed the workspace. `after` is the stop build that was seen: the
 * workspace may have been started and stopped again while access was checked.
 */
const startWorkspace = async (
  ctx: DomainContext,
  { id, after }: { readonly id: string; readonly after: string },
  initiator: UserCaller,
  reason: CreateBuild["reason"],
): Promise<string | undefined> => {
  try {
    const body = { transition: "start", ...(reason === undefined ? {} : { reason }) } as const;
    // Any page can make a browser connect, so connecting does not approve what the workspace runs.
    return (await createBuild(ctx, id, body, initiator, { isOnBehalf: true, after })).id;
  } catch (error) {
    const current = await ctx.store.get(findWorkspaceAccessRow({ id }));
    const hasConflict = error instanceof AppError && error.kind === "conflict" && current !== undefined;
    if (hasConflict && (await findWakeState(ctx, current)).state !== "stopped") return undefined;
    throw error;
  }
};

/** Returns the user who starts it. Rejects with 403 for callers who may not, and with 409 when the template or the owner has disabled it. */
const checkWake = async (
  { store }: DomainContext,
  workspace: WorkspaceAccessRow,
  { caller, isVisitor = false }: WakeInput,
): Promise<UserCaller> => {
  const template = await store.get(findTemplateEvenDeleted({ id: workspace.template_id }));
  const level = (template?.wake_on_connect ?? "off") as WakeLevel;
  const canStart = caller !== undefined && canStartStop(caller, workspace);
  const isAllowedVisitor = isVisitor && level === "public";
  if (workspace.owner_id === PREBUILDS_USER_ID || (!canStart && !isAllowedVisitor)) {
    throw forbidden("You may not start this workspace.");
  }
  if (level === "off") {
    throw conflict(
      `The workspace is stopped, and the template "${template?.name}" does not start workspaces on connect.`,
    );
  }
  // A visitor starts it on the owner's behalf, if the owner allows it.
  const initiator = canStart ? caller : await loadCaller(store, workspace.owner_id);
  const user = initiator && (await store.get(findUser({ id: initiator.user_id })));
  if (!initiator || !user) throw forbidden("The workspace's owner may not start it now.");
  if (!user.wake_on_connect)
    throw conflict("The workspace is stopped, and your preferences say not to start it on connect.");
  return initiator;
};
