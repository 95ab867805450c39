// Ends a way that is not kept, and what was only made for one that is: its chat goes into the archive, its workspace into the trash.
import { AppError } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import type { Store } from "#db/engine/store.ts";
import type { StoredWay, TrialRow } from "#db/trials/trials.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import type { ForkRow } from "#db/workspaces/forks.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { findWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { isActive, jobStatus } from "#schema/workspaces/job.ts";
import type { ChatActor } from "../chat/actor.ts";
import { endChat } from "../chat/end-chat.ts";
import type { Directory } from "../runtime/directory.ts";
import type { WorkspaceActor } from "../workspace/actor.ts";
import { dropCopy } from "./keeping.ts";
import { toWords } from "./running.ts";
import type { TrialEvent } from "./state.ts";

export type EndingDeps = {
  readonly store: Store;
  readonly workspaces: Directory<WorkspaceActor>;
  readonly chats: Directory<ChatActor>;
  /** Begins the build that deletes the workspace, whose files stay in the trash. Throws AppError when that cannot be. */
  readonly remove: (trial: TrialRow, workspace_id: string) => Promise<void>;
};

/** `gone` once nothing of the way is left; undefined while it is under way. `fork` is read before anything else of the way. */
export const endWay = async (
  deps: EndingDeps,
  { trial, fork }: { readonly trial: TrialRow; readonly fork: ForkRow | undefined },
  way: StoredWay,
): Promise<TrialEvent | undefined> => {
  const { store } = deps;
  const { number, workspace_id } = way;
  const { keep } = trial;
  const isKept = keep?.number === number;
  // Until then its workspace and its chat may still be created.
  const isMade = !fork || fork.status === "ready" || fork.status === "failed";
  try {
    if (!isKept) await endChat(deps, way.chat_id);
    const workspace = await store.get(findWorkspace({ id: workspace_id }));
    if (workspace && !workspace.deleted) {
      if (isKept && !(await dropCopy(deps, workspace_id, keep.snapshot_id))) return undefined;
      const problem = await removeWorkspace(deps, trial, workspace);
      return problem === undefined ? undefined : { type: "gone", number, error: problem };
    }
    failpoint("trial_deleted");
    return isMade ? { type: "gone", number } : undefined;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    // Its chat still ends, or its workspace is busy: their ends are news.
    if (error.kind === "conflict" || error.kind === "overloaded" || !isMade) return undefined;
    return { type: "gone", number, error: `It could not be deleted: ${toWords(error)}` };
  }
};

/** Does what is to be done next; why it cannot be deleted, where that is so. */
const removeWorkspace = async (
  { store, workspaces, remove }: EndingDeps,
  trial: TrialRow,
  workspace: WorkspaceRow,
): Promise<string | undefined> => {
  const build = await store.get(findBuild({ id: workspace.latest_build_id }));
  const job = build && (await store.get(findJob({ id: build.job_id })));
  if (!job) return undefined;
  if (isActive(job)) {
    // A build whose workspace is to be deleted need not be finished.
    if (build.transition !== "delete" && job.canceled_at === null) {
      await workspaces.ask(workspace.id, "cancelBuild", { build_id: build.id }).catch((error) => {
        if (!(error instanceof AppError)) throw error;
      });
    }
    return undefined;
  }
  if (build.transition === "delete" && jobStatus(job) === "failed")
    return `${workspace.name} could not be deleted: ${job.error}`;
  await remove(trial, workspace.id);
  return undefined;
};
