// Moves the kept way into the first workspace: creates a snapshot of the way's files and one of the files that they replace, restores the
// way's snapshot with a build, and moves the chat. Each step first checks whether it is already done, so no step is repeated after a
// crash.
import { AppError } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import type { StoredKeep, TrialRow } from "#db/trials/trials.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { listBuildsOfFork } from "#db/workspaces/forks.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { findSnapshot, type SnapshotRow } from "#db/workspaces/snapshots.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import { toJobStatus } from "#schema/workspaces/job.ts";
import type { ChatActor } from "../chat/actor.ts";
import type { Directory } from "../runtime/directory.ts";
import type { WorkspaceActor } from "../workspace/actor.ts";
import { formatAppError } from "./running.ts";
import type { TrialEvent } from "./state.ts";

export type KeepingDeps = {
  readonly store: Store;
  readonly workspaces: Directory<WorkspaceActor>;
  readonly chats: Directory<ChatActor>;
  /** Starts the build that restores these files in the trial's workspace. Throws AppError if that is not possible. */
  readonly restore: (trial: TrialRow, snapshot: SnapshotRow) => Promise<void>;
};

/** Returns the outcome for the kept way; undefined while it is in progress. */
export const checkKeep = async (
  deps: KeepingDeps,
  trial: TrialRow,
  keep: StoredKeep,
): Promise<TrialEvent | undefined> => {
  const way = trial.ways.find(({ number }) => number === keep.number);
  if (!way) return undefined;
  const failKeep = async (error: string): Promise<TrialEvent> => {
    await dropCopy(deps, way.workspace_id, keep.snapshot_id);
    return { type: "keep_failed", error };
  };
  const builds = await deps.store.all(listBuildsOfFork({ restored_snapshot_id: keep.snapshot_id }));
  const build = builds.find(({ workspace_id }) => workspace_id === trial.workspace_id);
  if (!build) {
    const problem = await prepare(deps, trial, { ...keep, workspace_id: way.workspace_id });
    return problem === undefined ? undefined : failKeep(problem);
  }
  const status = toJobStatus(build);
  if (status === "failed" || status === "canceled")
    return failKeep(build.error || "The build that restores its files was canceled.");
  if (status !== "succeeded") return undefined;
  failpoint("trial_restored");
  await moveChat(deps, way.chat_id, trial.workspace_id);
  failpoint("trial_moved");
  return { type: "restored" };
};

/** Performs the next step. Returns why it is not possible, or undefined. */
const prepare = async (
  deps: KeepingDeps,
  trial: TrialRow,
  { number, snapshot_id, safety_id, workspace_id }: StoredKeep & { readonly workspace_id: string },
): Promise<string | undefined> => {
  try {
    const copy = await ensureCopied(deps, workspace_id, {
      id: snapshot_id,
      name: "",
      reason: "fork",
      created_by: trial.owner_id,
    });
    if (typeof copy === "string" || copy === undefined) return copy;
    failpoint("trial_copied");
    const safetyOptions = {
      id: safety_id,
      name: `Before keeping way ${number}`,
      reason: "manual",
      created_by: trial.owner_id,
    } as const;
    const safety = await ensureCopied(deps, trial.workspace_id, safetyOptions);
    if (typeof safety === "string" || safety === undefined) return safety;
    await deps.restore(trial, copy);
    failpoint("trial_restoring");
    return undefined;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    // Waits for the end of another build or snapshot.
    return error.kind === "conflict" || error.kind === "overloaded" ? undefined : formatAppError(error);
  }
};

type WantedSnapshot = Pick<SnapshotRow, "id" | "name" | "reason" | "created_by">;

/** Returns the snapshot of the workspace when it is ready; undefined while it is being created; the reason if it failed. */
const ensureCopied = async (
  { store, workspaces }: KeepingDeps,
  workspace_id: string,
  options: WantedSnapshot,
): Promise<SnapshotRow | string | undefined> => {
  const existing = await store.get(findSnapshot({ id: options.id }));
  if (existing?.status === "ready") return existing;
  if (existing) return existing.status === "failed" ? existing.error : undefined;
  const workspace = await store.get(findWorkspace({ id: workspace_id }));
  const build = workspace && (await store.get(findBuild({ id: workspace.latest_build_id })));
  const job = build && (await store.get(findJob({ id: build.job_id })));
  if (!job || workspace.deleted) return "The workspace was deleted.";
  const { id, name, reason, created_by } = options;
  await workspaces.ask(workspace_id, "createSnapshot", { id, name, reason, created_by, provisioner: job.provisioner });
  return undefined;
};

/** Deletes the snapshot of a way's files. Returns true when it no longer exists. */
export const dropCopy = async (
  { store, workspaces }: Pick<KeepingDeps, "store" | "workspaces">,
  workspace_id: string,
  snapshot_id: string,
): Promise<boolean> => {
  const existing = await store.get(findSnapshot({ id: snapshot_id }));
  if (!existing) return true;
  await workspaces.ask(workspace_id, "deleteSnapshot", { snapshot_id, by_keeper: true }).catch((error) => {
    if (!(error instanceof AppError) || (error.kind !== "not_found" && error.kind !== "conflict")) throw error;
  });
  return false;
};

const moveChat = async ({ store, chats }: KeepingDeps, chat_id: string, workspace_id: string): Promise<void> => {
  const chat = await store.get(findChatAccessRow({ id: chat_id }));
  if (!chat || chat.workspace_id === workspace_id) return;
  await chats.ask(chat_id, "change", { patch: { workspace_id }, pin: null });
};
