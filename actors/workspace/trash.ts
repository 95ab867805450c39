// Moves deleted workspaces to the trash, where their files are kept for some days, and restores them. Used by the decisions about builds
// (state.ts) and by the workspace actor.
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { clearTimer, setTimer } from "#db/engine/timers.ts";
import { deleteRowsOf } from "#db/removal.ts";
import { deleteFilesOfSnapshots, type SnapshotRow, updateSnapshot } from "#db/workspaces/snapshots.ts";
import { listTrashByOwner } from "#db/workspaces/trash.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import type { NewBuild, WorkspaceCommand, WorkspaceState } from "./decision.ts";

type CompleteCommand = Extract<WorkspaceCommand, { type: "complete" }>;

/** The timer of a workspace in the trash. Its files are deleted when it is due. */
export const EMPTY_TRASH = "empty_trash";
/** Maximum workspaces of an owner in the trash. One more removes the oldest. */
const MAX_TRASHED = 20;

/** Returns true if the build deletes the remaining files of a workspace in the trash. */
export const isEmptyingTrash = (workspace: WorkspaceRow, { transition, kept_ms }: NewBuild): boolean =>
  workspace.trashed_until !== null && transition === "delete" && kept_ms === undefined;

/** Marks snapshots of a template's module as being deleted. Their rows remain until the module has deleted the snapshots. */
const markDeleting = (created: readonly SnapshotRow[], now: number): Statement[] =>
  created.map(({ id }) => updateSnapshot(id, { status: "deleting", updated_at: now }, { expect: 1 }));

/** Returns the changes after a successful delete. Removes shares and keys, even if the files are kept. */
export const buildTrashDeletion = (
  { workspace, build }: WorkspaceState,
  { kept_bytes, made_snapshots = [] }: Pick<CompleteCommand, "kept_bytes" | "made_snapshots">,
  now: number,
): { readonly workspace: Partial<WorkspaceRow>; readonly writes: readonly Statement[] } => {
  const { id } = workspace;
  const revoked = deleteRowsOf("workspace", id);
  const deletedFields = { deleted: true, updated_at: now, user_acl: {}, group_acl: {} };
  if (build.kept_ms === null) {
    return {
      workspace: { ...deletedFields, trashed_until: null, trashed_bytes: null },
      writes: [
        ...revoked,
        deleteFilesOfSnapshots({ workspace_id: id }),
        ...markDeleting(made_snapshots, now),
        clearTimer("workspace", id, EMPTY_TRASH),
      ],
    };
  }
  const trashed_until = now + build.kept_ms;
  return {
    workspace: { ...deletedFields, trashed_until, trashed_bytes: kept_bytes ?? null },
    writes: [...revoked, setTimer("workspace", id, EMPTY_TRASH, trashed_until)],
  };
};

/** Returns the workspace restored from the trash, with this name. */
export const restoreFromTrash = (
  state: WorkspaceState,
  name: string,
  now: number,
): { readonly state: WorkspaceState; readonly patch: Partial<WorkspaceRow>; readonly writes: readonly Statement[] } => {
  const activity = { dormant_at: null, deleting_at: null, last_used_at: now };
  const patch = { ...activity, deleted: false, trashed_until: null, trashed_bytes: null, name };
  return {
    state: { ...state, workspace: { ...state.workspace, ...patch } },
    patch,
    writes: [clearTimer("workspace", state.workspace.id, EMPTY_TRASH)],
  };
};

/** Returns timers that remove the oldest workspaces from the owner's trash to make room for this one. */
export const trimTrash = async (store: Store, { owner_id }: WorkspaceRow, now: number): Promise<Statement[]> => {
  const trashed = await store.all(listTrashByOwner({ owner_id }));
  const excess = trashed.slice(0, Math.max(0, trashed.length + 1 - MAX_TRASHED));
  return excess.map(({ id }) => setTimer("workspace", id, EMPTY_TRASH, now));
};
