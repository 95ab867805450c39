// The owner's decisions on a trial: stop its ways, keep one, or discard all.

import { countKept } from "#actors/workspace/snapshot-rows.ts";
import { conflict, forbidden } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { findTrial, type TrialRow } from "#db/trials/trials.ts";
import { listSnapshots } from "#db/workspaces/snapshots.ts";
import type { Trial } from "#schema/chats/trial.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { MAX_SNAPSHOTS } from "#schema/workspaces/snapshot.ts";
import { canUseWorkspace } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { findChangeableWorkspace } from "../workspaces/find.ts";
import { auditTrial } from "./audit.ts";
import { presentTrial } from "./present.ts";

/** Stops the ways; their forks remain until one is kept or all are discarded. Throws 409 when none is working. */
export const stopTrial = async (ctx: DomainContext, trial: TrialRow): Promise<Trial> => {
  const now = ctx.clock.now();
  await ctx.trials.applyEvent(trial.id, { type: "stop", now }, [auditTrial(trial, "stop_ways", now)]);
  return reloadTrial(ctx, trial);
};

/**
 * Starts keeping a way: the first workspace gets its files, its chat continues there, and all forks are deleted. Throws 400 for an unknown
 * number, 403 and 404 without access to the first workspace, and 409 for a way that is still working.
 */
export const keepWay = async (
  ctx: DomainContext,
  trial: TrialRow,
  number: number,
  caller: UserCaller,
): Promise<Trial> => {
  const workspace = await findChangeableWorkspace(ctx, trial.workspace_id, caller);
  if (!canUseWorkspace(caller, workspace)) throw forbidden("You may not work in this workspace.");
  if (countKept(await ctx.store.all(listSnapshots({ workspace_id: workspace.id }))) >= MAX_SNAPSHOTS) {
    throw conflict(
      `${workspace.name} has ${MAX_SNAPSHOTS} snapshots, and needs one more to keep a way. Delete one of them first.`,
    );
  }
  const now = ctx.clock.now();
  const event = { type: "keep", number, snapshot_id: uuid(), safety_id: uuid(), now } as const;
  await ctx.trials.applyEvent(trial.id, event, [auditTrial(trial, "keep_way", now, number)]);
  return reloadTrial(ctx, trial);
};

/** Starts deleting all forks and archiving their chats. Throws 409 while a way is being kept. */
export const discardTrial = async (ctx: DomainContext, trial: TrialRow): Promise<Trial> => {
  const now = ctx.clock.now();
  await ctx.trials.applyEvent(trial.id, { type: "discard", now }, [auditTrial(trial, "discard_ways", now)]);
  return reloadTrial(ctx, trial);
};

const reloadTrial = async (ctx: DomainContext, trial: TrialRow): Promise<Trial> =>
  presentTrial(ctx, (await ctx.store.get(findTrial({ id: trial.id })))?.trial ?? trial);
