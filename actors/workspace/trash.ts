// The trash: what becomes of a workspace that is deleted and keeps its files for some days, and how it comes out again. Pure; used by the decisions
// about builds (state.ts) and by the workspace actor.
import type { Statement } from "#db/engine/sql.ts";
import { clearTimer, setTimer } from "#db/engine/timers.ts";
import { deleteKeysByWorkspace } from "#db/users/api-keys.ts";
import { deletePortSharesByWorkspace } from "#db/workspaces/port-shares.ts";
import { deleteFilesOfSnapshots, type SnapshotRow, updateSnapshot } from "#db/workspaces/snapshots.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import type { NewBuild, WorkspaceCommand, WorkspaceState } from "./decision.ts";

type Completed = Extract<WorkspaceCommand, { type: "complete" }>;

/** The timer of a workspace in the trash: its files go when it is due. */
export const EMPTY_TRASH = "empty_trash";
/** Workspaces of one owner in the trash; the oldest goes for one more. */
export const MAX_TRASHED = 20;

/** True for the build that removes what is left of a workspace in the trash. */
export const emptiesTrash = (workspace: WorkspaceRow, { transition, kept_ms }: NewBuild): boolean =>
  workspace.trashed_until !== null && transition === "delete" && kept_ms === undefined;

/** Snapshots that a module of the template has made: their rows stay until it has removed them. */
const discarding = (made: readonly SnapshotRow[], now: number): Statement[] =>
  made.map(({ id }) => updateSnapshot(id, { status: "deleting", updated_at: now }, { expect: 1 }));

/** What a delete that ended well changes: shares and keys end with it, whether its files stay or go. */
export const deletion = (
  { workspace, build }: WorkspaceState,
  { kept_bytes, made_snapshots = [] }: Pick<Completed, "kept_bytes" | "made_snapshots">,
  now: number,
): { readonly workspace: Partial<WorkspaceRow>; readonly writes: readonly Statement[] } => {
  const { id } = workspace;
  const revoked = [deletePortSharesByWorkspace(id), deleteKeysByWorkspace({ workspace_id: id })];
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

/** The same workspace out of the trash, under a name that may be another. */
export const withoutTrash = (
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
