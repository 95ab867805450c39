// Ends a way that is not kept, and the fork of the kept way: archives the chat and moves the workspace to the trash.
import { AppError } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import type { Store } from "#db/engine/store.ts";
import type { StoredWay, TrialRow } from "#db/trials/trials.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import type { ForkRow } from "#db/workspaces/forks.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { findWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { isActive, toJobStatus } from "#schema/workspaces/job.ts";
import type { ChatActor } from "../chat/actor.ts";
import { endChat } from "../chat/end-chat.ts";
import type { Directory } from "../runtime/directory.ts";
import type { WorkspaceActor } from "../workspace/actor.ts";
import { dropCopy } from "./keep-way.ts";
import { formatAppError } from "./running.ts";
import type { TrialEvent } from "./state.ts";

export type EndingDeps = {
  readonly store: Store;
  readonly workspaces: Directory<WorkspaceActor>;
  readonly chats: Directory<ChatActor>;
  /** Starts the build that deletes the workspace; the trash keeps its files. Throws AppError if that is not possible. */
  readonly remove: (trial: TrialRow, workspace_id: string) => Promise<void>;
};

/** Returns the event `gone` when the way is fully cleaned up; undefined before that. `fork` must be read before this call. */
export const endWay = async (
  deps: EndingDeps,
  { trial, fork }: { readonly trial: TrialRow; readonly fork: ForkRow | undefined },
  way: StoredWay,
): Promise<TrialEvent | undefined> => {
  const { store } = deps;
  const { number, workspace_id } = way;
  const { keep } = trial;
  const isKept = keep?.number === number;
  // Until the fork has ended, the way's workspace and chat may still be created.
  const isForkSettled = !fork || fork.status === "ready" || fork.status === "failed";
  try {
    if (!isKept) await endChat(deps, way.chat_id);
    const workspace = await store.get(findWorkspace({ id: workspace_id }));
    if (workspace && !workspace.deleted) {
      if (isKept && !(await dropCopy(deps, workspace_id, keep.snapshot_id))) return undefined;
      const problem = await removeWorkspace(deps, trial, workspace);
      return problem === undefined ? undefined : { type: "gone", number, error: problem };
    }
    failpoint("trial_deleted");
    return isForkSettled ? { type: "gone", number } : undefined;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    // The chat is still running, or the workspace is busy. When that ends, an event triggers the next check.
    if (error.kind === "conflict" || error.kind === "overloaded" || !isForkSettled) return undefined;
    return { type: "gone", number, error: `It could not be deleted: ${formatAppError(error)}` };
  }
};

/** Performs the next step of deleting the workspace. Returns why it cannot be deleted, or undefined. */
const removeWorkspace = async (
  { store, workspaces, remove }: EndingDeps,
  trial: TrialRow,
  workspace: WorkspaceRow,
): Promise<string | undefined> => {
  const build = await store.get(findBuild({ id: workspace.latest_build_id }));
  const job = build && (await store.get(findJob({ id: build.job_id })));
  if (!job) return undefined;
  if (isActive(job)) {
    // Cancels a build of a workspace that will be deleted.
    if (build.transition !== "delete" && job.canceled_at === null) {
      await workspaces.ask(workspace.id, "cancelBuild", { build_id: build.id }).catch((error) => {
        if (!(error instanceof AppError)) throw error;
      });
    }
    return undefined;
  }
  if (build.transition === "delete" && toJobStatus(job) === "failed")
    return `${workspace.name} could not be deleted: ${job.error}`;
  await remove(trial, workspace.id);
  return undefined;
};
