// Takes over and hands off a node's parts, including the work in progress on them. A single server takes over all parts at startup.
import { revokeForbiddenChatShares } from "#actors/chat/background/sharing-limits.ts";
import { recoverChats } from "#actors/chat/recovery.ts";
import { FORK, type ForkKeeper } from "#actors/forks/keeper.ts";
import type { HomeBackupKeeper } from "#actors/home-backups/keeper.ts";
import { IMAGE_PREBUILD, type ImagePrebuildKeeper } from "#actors/image-prebuilds/keeper.ts";
import type { PrebuildKeeper } from "#actors/prebuilds/keeper.ts";
import { ResumeIncompleteError } from "#actors/runtime/resume-work.ts";
import type { Scheduler } from "#actors/runtime/scheduler.ts";
import { TASK, type TaskKeeper } from "#actors/tasks/keeper.ts";
import { DRY_RUN } from "#actors/template-version/dry-run-actor.ts";
import { recoverDryRuns, recoverImports } from "#actors/template-version/recovery.ts";
import { TRIAL, type TrialKeeper } from "#actors/trials/keeper.ts";
import type { Uses } from "#actors/workspace/activity-uses.ts";
import { lowerPortShares } from "#actors/workspace/port-limits.ts";
import { recoverBuilds, recoverSnapshots, recoverWorkspaces } from "#actors/workspace/recovery.ts";
import { revokeForbiddenShares } from "#actors/workspace/sharing-limits.ts";
import type { SnapshotRunner } from "#actors/workspace/snapshot-runner.ts";
import { EMPTY_TRASH } from "#actors/workspace/trash.ts";
import { log } from "#base/log.ts";
import { ALL_PARTS, FIRST_PART, getOwnParts, type PartNumbers, type Parts, selectParts } from "#base/parts.ts";
import { finishesWithin } from "#base/retry.ts";
import type { Timer } from "#db/engine/timers.ts";
import { sealReadableVariables } from "#db/templates/variables.ts";
import { stopForbiddenLocal } from "#domain/builds/local-limits.ts";
import type { DomainContext } from "#domain/context.ts";
import type { ReadyTemplates } from "#domain/templates/starter.ts";
import { prepareIdentity } from "#domain/users/first-user.ts";
import type { ApiContext } from "#src/api/context.ts";

/** The part of the context (context.ts) that concerns parts. */
type Owning = Omit<ApiContext, "tasks" | "forks" | "homeBackups" | "trials"> & {
  readonly parts: Parts;
  readonly tasks: TaskKeeper;
  readonly forks: ForkKeeper;
  readonly homeBackups: HomeBackupKeeper;
  readonly imagePrebuilds: ImagePrebuildKeeper;
  readonly trials: TrialKeeper;
  readonly readyTemplates: ReadyTemplates;
  readonly scheduler: Scheduler;
  readonly uses: Uses;
  readonly snapshots: SnapshotRunner;
  readonly actors: readonly { releaseParts(isLeaving: (part: number) => boolean): Promise<unknown> }[];
  readonly chores: readonly { whenIdle(): Promise<unknown> }[];
};

/** Maximum time a part has no owner while its work ends. */
const RELEASE_TIMEOUT_MS = 3_000;

/** Prepares cluster-wide singletons before requests are answered. Called each time a node becomes the first one. */
export const prepareFirst = async ({
  store,
  clock,
  accounts,
  config,
  encryption,
  ledger,
  parts,
}: Owning): Promise<void> => {
  accounts.setupNeeded = await prepareIdentity({ store, clock, passwords: accounts.passwords }, config);
  await sealReadableVariables(store, encryption);
  await ledger.settleLost({ all: parts === ALL_PARTS });
};

/** Ends what limits forbid but a crash may have left, in any part. Called each time a node becomes the first one. */
export const endForbidden = async (ctx: Owning): Promise<void> => {
  await lowerPortShares(ctx.store, ctx.workspaces);
  await revokeForbiddenShares(ctx.store, ctx.workspaces);
  await revokeForbiddenChatShares(ctx.store, ctx.chats);
  await stopForbiddenLocal(ctx);
};

/** Resumes interrupted work; undefined means of all parts. */
export const recoverActors = async (ctx: Owning, parts: PartNumbers): Promise<void> => {
  let later: ResumeIncompleteError | undefined;
  for (const recover of [recoverImports, recoverDryRuns, recoverBuilds, recoverSnapshots, recoverChats]) {
    try {
      await recover(ctx, parts);
    } catch (error) {
      if (!(error instanceof ResumeIncompleteError)) throw error;
      later = error;
    }
  }
  // Workspaces on the server's own machine, which are not available with several nodes.
  if (parts === undefined) await recoverWorkspaces(ctx.store, ctx.provisioners);
  await ctx.tasks.start(parts);
  await ctx.forks.start(parts);
  ctx.homeBackups.sweep();
  if (parts === undefined || parts.includes(FIRST_PART)) await ctx.imagePrebuilds.start();
  await ctx.trials.start(parts);
  // A startup continues without them; for newly acquired parts, it is retried.
  if (later && parts !== undefined) throw later;
};

/** Takes over newly acquired parts. */
export const adoptParts = async (ctx: Owning, parts: readonly number[]): Promise<void> => {
  const isFirst = parts.includes(FIRST_PART);
  if (isFirst) await prepareFirst(ctx);
  await ctx.connections.recoverParts(parts);
  await recoverActors(ctx, selectParts(parts));
  if (!isFirst) return;
  await endForbidden(ctx);
  // Not awaited, because its imports can take some time.
  void ctx.readyTemplates.start().catch((error) => log("templates").warn("not all could be made: {error}", { error }));
};

/** Ends the work of parts that are about to be handed off. */
export const releaseParts = async (ctx: Owning, parts: readonly number[]): Promise<void> => {
  const leaving = new Set(parts);
  const isLeaving = (part: number): boolean => leaving.has(part);
  const close = (): void => {
    ctx.streams.endParts(isLeaving);
    ctx.sockets.closeParts(isLeaving);
  };
  close();
  await finishesWithin(ctx.clock, RELEASE_TIMEOUT_MS, endWork(ctx, isLeaving));
  // Closes what was opened by requests that were already in progress.
  close();
};

const endWork = async (ctx: Owning, isLeaving: (part: number) => boolean): Promise<void> => {
  const work = () => Promise.all([ctx.generations.releaseParts(isLeaving), ctx.jobs.releaseParts(isLeaving)]);
  // Recorded activity still reaches the workspaces on their nodes.
  void ctx.uses.flush();
  const isFirst = isLeaving(FIRST_PART);
  if (isFirst) await Promise.all([ctx.readyTemplates.stop(), ctx.imagePrebuilds.abortBuilds()]);
  const ended = work();
  if (isFirst) ctx.workers.closeAll("another node has the workers now");
  await Promise.all([
    // Writes after this are rejected by the database once another node owns the parts.
    ctx.requests.waitUntilLeft(isLeaving),
    ended,
    ...ctx.actors.map((one) => one.releaseParts(isLeaving)),
    ctx.tasks.releaseAllExcept(getOwnParts(ctx.parts)),
    ctx.forks.releaseAllExcept(getOwnParts(ctx.parts)),
    ctx.homeBackups.releaseParts(isLeaving),
    ctx.snapshots.releaseParts(isLeaving),
    ctx.trials.releaseAllExcept(getOwnParts(ctx.parts)),
    ctx.usage.flush(),
  ]);
  // Messages that were waiting may have started something.
  await work();
  if (!isFirst) return;
  // These are idle by now; the next node starts them.
  await Promise.all([...ctx.chores.map((one) => one.whenIdle()), ctx.scheduler.whenSettled()]);
};

type TimerTargets = Pick<DomainContext, "chats" | "diffs" | "versions" | "dryRuns" | "workspaces"> & {
  readonly prebuilds: PrebuildKeeper;
  readonly imagePrebuilds: ImagePrebuildKeeper;
  readonly tasks: TaskKeeper;
  readonly forks: ForkKeeper;
  readonly trials: TrialKeeper;
};

export const deliver = async (parts: TimerTargets, timer: Timer): Promise<void> => {
  const { actor, actor_id, name } = timer;
  if (actor === "chat") await parts.chats.ask(actor_id, "deadlinePassed", {});
  if (actor === "chat_diff") await parts.diffs.onTimer(actor_id);
  if (actor === "template_version") await parts.versions.ask(actor_id, "reap", {});
  if (actor === DRY_RUN) await parts.dryRuns.ask(actor_id, "reap", {});
  if (actor === "workspace") await deliverToWorkspace(parts, timer);
  if (actor === TASK) await parts.tasks.onTimer(actor_id, name);
  if (actor === FORK) await parts.forks.onTimer(actor_id);
  if (actor === IMAGE_PREBUILD) await parts.imagePrebuilds.onTimer(actor_id, timer.due);
  if (actor === TRIAL) await parts.trials.onTimer(actor_id);
  if (actor === "prebuilds") await parts.prebuilds.reconcile(actor_id);
};

const deliverToWorkspace = async ({ workspaces }: TimerTargets, { actor_id, name }: Timer): Promise<void> => {
  if (name === "reap") await workspaces.ask(actor_id, "reap", {});
  if (name === EMPTY_TRASH) await workspaces.ask(actor_id, "emptyTrash", {});
  if (name === "schedule") await workspaces.ask(actor_id, "runSchedule", {});
  if (name === "reset_used" || name === "reset_dormant") await workspaces.ask(actor_id, "resetTimes", { name });
};
