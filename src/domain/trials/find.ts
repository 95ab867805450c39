// Finds the trial that a path names. Only the owner can see trials, because diffs and check output come from the owner's workspaces.
import { forbidden, notFound } from "#base/errors.ts";
import { findTrial, findTrialDiff, listTrials, type TrialRow } from "#db/trials/trials.ts";
import type { Trial, TrialDiff, Trials } from "#schema/chats/trial.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canDriveChat } from "../access.ts";
import { findVisibleChat } from "../chats/find.ts";
import type { DomainContext } from "../context.ts";
import { presentTrial } from "./present.ts";

const MAX_LISTED = 20;

/** Returns the trial with this ID of this chat. Throws 403, 404. */
export const loadTrial = async (
  ctx: DomainContext,
  { chat, trial }: { readonly chat: string; readonly trial: string },
  caller: UserCaller,
): Promise<TrialRow> => {
  const access = await findVisibleChat(ctx, chat, caller);
  if (!canDriveChat(caller, access)) throw forbidden("Only the owner of a chat can do this.");
  const found = (await ctx.store.get(findTrial({ id: trial.toLowerCase() })))?.trial;
  if (found?.chat_id !== access.id) throw notFound();
  return found;
};

/** Returns the trials of a chat, newest first; empty for people with read-only access. Throws 404. */
export const readTrials = async (ctx: DomainContext, chat: string, caller: UserCaller): Promise<Trials> => {
  const access = await findVisibleChat(ctx, chat, caller);
  if (!canDriveChat(caller, access)) return { trials: [] };
  const rows = await ctx.store.all(listTrials({ chat_id: access.id, limit: MAX_LISTED }));
  return { trials: await Promise.all(rows.map((row): Promise<Trial> => presentTrial(ctx, row))) };
};

/** Returns the changes of a way. Throws 404 before they are known. */
export const readTrialDiff = async ({ store }: DomainContext, { id }: TrialRow, number: number): Promise<TrialDiff> => {
  const found = await store.get(findTrialDiff({ trial_id: id, number }));
  if (!found) throw notFound();
  return { folders: [...found.folders] };
};
