// Decides the state transitions of a workspace's snapshots. snapshot-runner.ts copies and deletes the files outside of the mailbox, and
// reports with the snapshot's ID. Pure; used only by the workspace actor, which reads the rows.
import { AppError, conflict, notFound } from "#base/errors.ts";
import { deleteSnapshot, type SnapshotRow, updateSnapshot } from "#db/workspaces/snapshots.ts";
import { isActive } from "#schema/workspaces/job.ts";
import { isTemporary, MAX_SNAPSHOTS, type SnapshotReason, type SnapshotStatus } from "#schema/workspaces/snapshot.ts";
import type { Change, Decision, WorkspaceState } from "./decision.ts";
import {
  countKept,
  type Move,
  moveSnapshot,
  type NewSnapshot,
  SNAPSHOT_IN_PROGRESS,
  startDeletion,
  startSnapshot,
} from "./snapshot-rows.ts";
import { toVisibleChange } from "./state.ts";

/** Begins a snapshot. Refuses with 409 during a build or another snapshot, or at the limit, and with 410 for a deleted workspace. */
export const beginSnapshot = (
  state: WorkspaceState,
  snapshot: NewSnapshot,
  existing: readonly SnapshotRow[],
  now: number,
): Decision => {
  const toRefusal = (error: AppError): Decision => ({ kind: "refused", error });
  if (state.workspace.deleted) return toRefusal(new AppError("gone", "The workspace has been deleted."));
  if (isActive(state.job))
    return toRefusal(conflict("A build of the workspace is active. Try again when it has ended."));
  if (state.capturing !== null) return toRefusal(conflict(SNAPSHOT_IN_PROGRESS));
  if (!isTemporary(snapshot.reason) && countKept(existing) >= MAX_SNAPSHOTS) {
    return toRefusal(conflict(`A workspace can have at most ${MAX_SNAPSHOTS} snapshots. Delete one first.`));
  }
  const { writes, effects } = startSnapshot(state, snapshot, now);
  const { id: snapshot_id, provisioner, home_backup_id = null } = snapshot;
  const capturing = { snapshot_id, provisioner, home_backup_id };
  return {
    ...touchWorkspace({ ...state, capturing }, writes, now),
    effects,
  };
};

const IN_USE_REASONS: Partial<Record<SnapshotReason, string>> = {
  fork: "Other workspaces are still being created from this snapshot. It is deleted afterwards.",
  backup: "A backup of the workspace is still being copied from this snapshot. It is deleted afterwards.",
};

/** Completes a snapshot after its files were copied. Returns `stale` if the snapshot is not being created. */
export const completeCapture = (
  state: WorkspaceState,
  row: SnapshotRow | undefined,
  created: Pick<SnapshotRow, "method" | "bytes" | "sealed_state">,
  now: number,
): Decision => endCapture(state, row, "captured", { ...created, updated_at: now });

/** Fails a snapshot of which the files could not be copied. `sealed_state` identifies the files that could not be deleted. */
export const failCapture = (
  state: WorkspaceState,
  row: SnapshotRow | undefined,
  failure: Pick<SnapshotRow, "error" | "sealed_state">,
  now: number,
): Decision => endCapture(state, row, "failed", { ...failure, updated_at: now });

const endCapture = (
  state: WorkspaceState,
  row: SnapshotRow | undefined,
  move: Move,
  patch: Partial<SnapshotRow> & Pick<SnapshotRow, "updated_at">,
): Decision => {
  const status = row && moveSnapshot(row.status, move);
  if (!row || (status !== "ready" && status !== "failed")) return { kind: "stale" };
  return touchWorkspace(
    { ...state, capturing: null },
    [updateSnapshot(row.id, { ...patch, status }, { expect: 1 })],
    patch.updated_at,
  );
};

/**
 * Begins to delete a snapshot. Refuses with 404 if it does not exist, and with 409 while it is being created or restored, or a fork or home
 * backup needs it.
 */
export const dropSnapshot = (
  state: WorkspaceState,
  row: SnapshotRow | undefined,
  {
    restoring,
    by_keeper,
    now,
  }: { readonly restoring: readonly string[]; readonly by_keeper: boolean; readonly now: number },
): Decision => {
  if (row?.workspace_id !== state.workspace.id) return { kind: "refused", error: notFound() };
  const inUseReason = IN_USE_REASONS[row.reason];
  if (inUseReason !== undefined && !by_keeper) return { kind: "refused", error: conflict(inUseReason) };
  const status: SnapshotStatus = restoring.includes(row.id) ? "restoring" : row.status;
  if (status === "deleting") return { kind: "stale" };
  if (moveSnapshot(status, "delete") === undefined) {
    return { kind: "refused", error: conflict(`The snapshot is ${status}. Try again when it is done.`) };
  }
  const { writes, effects } = startDeletion(state, row, now);
  return { ...touchWorkspace(state, writes, now), effects };
};

/** Deletes the row after the files were deleted. */
export const deleteRow = (state: WorkspaceState, row: SnapshotRow | undefined, now: number): Decision =>
  row && moveSnapshot(row.status, "deleted") === "gone"
    ? touchWorkspace(state, [deleteSnapshot(row.id)], now)
    : { kind: "stale" };

/** Updates the workspace's time of change, so that watchers reload its snapshots. */
const touchWorkspace = (state: WorkspaceState, writes: Change["writes"], now: number): Change =>
  toVisibleChange(state, { workspace: { updated_at: Math.max(now, state.workspace.updated_at + 1) } }, writes);
