// The trash: how a deleted workspace keeps its files for some days, and how it is restored. Pure; used by the decisions about builds
// (state.ts) and by the workspace actor.
import type { Statement } from "#db/engine/sql.ts";
import { clearTimer, setTimer } from "#db/engine/timers.ts";
import { deleteRowsOf } from "#db/removal.ts";
import { deleteFilesOfSnapshots, type SnapshotRow, updateSnapshot } from "#db/workspaces/snapshots.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import type { NewBuild, WorkspaceCommand, WorkspaceState } from "./decision.ts";

type CompleteCommand = Extract<WorkspaceCommand, { type: "complete" }>;

/** The timer of a workspace in the trash. Its files are deleted when it is due. */
export const EMPTY_TRASH = "empty_trash";
/** Maximum workspaces of an owner in the trash. Adding one more deletes the oldest. */
export const MAX_TRASHED = 20;

/** Returns whether the build deletes the remains of a workspace in the trash. */
export const isEmptyingTrash = (workspace: WorkspaceRow, { transition, kept_ms }: NewBuild): boolean =>
  workspace.trashed_until !== null && transition === "delete" && kept_ms === undefined;

/** Keeps the rows of snapshots that a module of the template created until it has deleted them. */
const discarding = (created: readonly SnapshotRow[], now: number): Statement[] =>
  created.map(({ id }) => updateSnapshot(id, { status: "deleting", updated_at: now }, { expect: 1 }));

/** Returns the changes of a successful delete. Shares and keys are removed, whether the files are kept or not. */
export const deletion = (
  { workspace, build }: WorkspaceState,
  { kept_bytes, made_snapshots = [] }: Pick<CompleteCommand, "kept_bytes" | "made_snapshots">,
  now: number,
): { readonly workspace: Partial<WorkspaceRow>; readonly writes: readonly Statement[] } => {
  const { id } = workspace;
  const revoked = deleteRowsOf("workspace", id);
  const gone = { deleted: true, updated_at: now, user_acl: {}, group_acl: {} };
  if (build.kept_ms === null) {
    return {
      workspace: { ...gone, trashed_until: null, trashed_bytes: null },
      writes: [
        ...revoked,
        deleteFilesOfSnapshots({ workspace_id: id }),
        ...discarding(made_snapshots, now),
        clearTimer("workspace", id, EMPTY_TRASH),
      ],
    };
  }
  const trashed_until = now + build.kept_ms;
  return {
    workspace: { ...gone, trashed_until, trashed_bytes: kept_bytes ?? null },
    writes: [...revoked, setTimer("workspace", id, EMPTY_TRASH, trashed_until)],
  };
};

/** Returns the workspace restored from the trash, under a possibly different name. */
export const restoreFromTrash = (
  state: WorkspaceState,
  name: string,
  now: number,
): { readonly state: WorkspaceState; readonly patch: Partial<WorkspaceRow>; readonly writes: readonly Statement[] } => {
  const fresh = { dormant_at: null, deleting_at: null, last_used_at: now };
  const patch = { ...fresh, deleted: false, trashed_until: null, trashed_bytes: null, name };
  return {
    state: { ...state, workspace: { ...state.workspace, ...patch } },
    patch,
    writes: [clearTimer("workspace", state.workspace.id, EMPTY_TRASH)],
  };
};
