// Builds the writes and effects for snapshots that begin or are deleted, and contains the table of status transitions. Pure; used by the
// decisions about snapshots (snapshots.ts) and about the end of a stop (state.ts).
import type { Statement } from "#db/engine/sql.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { insertSnapshot, type SnapshotRow, updateSnapshot } from "#db/workspaces/snapshots.ts";
import { isTemporary, type SnapshotReason, type SnapshotStatus } from "#schema/workspaces/snapshot.ts";
import type { Change, SnapshotWork, StopSnapshot, WorkspaceEffect, WorkspaceState } from "./decision.ts";

export const SNAPSHOT_IN_PROGRESS = "A snapshot of the workspace is being created. Try again when it is ready.";

export type Move = "captured" | "failed" | "delete" | "deleted";

/** Status transitions. Other moves change nothing. `gone`: the row is deleted. */
const STATUS_TRANSITIONS: Readonly<Record<SnapshotStatus, Partial<Record<Move, SnapshotStatus | "gone">>>> = {
  creating: { captured: "ready", failed: "failed" },
  ready: { delete: "deleting" },
  failed: { delete: "deleting" },
  restoring: {},
  deleting: { deleted: "gone" },
};

export const moveSnapshot = (status: SnapshotStatus, move: Move): SnapshotStatus | "gone" | undefined =>
  STATUS_TRANSITIONS[status][move];

export type NewSnapshot = {
  readonly id: string;
  readonly name: string;
  readonly reason: SnapshotReason;
  readonly created_by: string;
  readonly provisioner: string;
  /** The home backup from which the files are copied. */
  readonly home_backup_id?: string;
};

/** Returns how many snapshots count toward the limit. */
export const countKept = (snapshots: readonly SnapshotRow[]): number =>
  snapshots.filter(({ status, reason }) => status !== "failed" && !isTemporary(reason)).length;

/** Returns the snapshot that is being created; there is at most one. */
export const findCapturing = (snapshots: readonly SnapshotRow[]): SnapshotWork | null => {
  const row = snapshots.find(({ status }) => status === "creating");
  return row ? { snapshot_id: row.id, provisioner: row.provisioner, home_backup_id: row.home_backup_id } : null;
};

type ChangePart = Pick<Change, "writes" | "effects">;

/** Begins a snapshot. */
export const startSnapshot = (
  state: WorkspaceState,
  { id, home_backup_id = null, ...snapshot }: Omit<NewSnapshot, "home_backup_id"> & { home_backup_id?: string | null },
  now: number,
): ChangePart => {
  const { workspace } = state;
  const row: SnapshotRow = {
    ...snapshot,
    id,
    home_backup_id,
    workspace_id: workspace.id,
    status: "creating",
    method: null,
    sealed_state: "",
    bytes: 0,
    error: "",
    created_at: now,
    updated_at: now,
  };
  return {
    writes: [insertSnapshot(row), ...auditSnapshot(state, row, "create", now)],
    effects: [{ do: "capture", snapshot_id: id, provisioner: snapshot.provisioner, home_backup_id }],
  };
};

/** Begins to delete a snapshot: first its files, and then its row. */
export const startDeletion = (state: WorkspaceState, row: SnapshotRow, now: number): ChangePart => ({
  writes: [
    updateSnapshot(row.id, { status: "deleting", updated_at: now }, { expect: 1 }),
    ...auditSnapshot(state, row, "delete", now),
  ],
  effects: [toDiscardEffect(row)],
});

/** Returns the effect that deletes the snapshot's files. */
export const toDiscardEffect = ({ id, provisioner }: SnapshotRow): WorkspaceEffect => ({
  do: "discard",
  snapshot_id: id,
  provisioner,
  home_backup_id: null,
});

/** Adds the beginning of the template's snapshot to the end of a stop. */
export const withSnapshotOnStop = (
  change: Change,
  { snapshot_id, provisioner, outdated }: StopSnapshot,
  now: number,
): Change => {
  const { owner_id } = change.state.workspace;
  const options = { id: snapshot_id, name: "", reason: "stop", created_by: owner_id, provisioner } as const;
  const parts = [
    startSnapshot(change.state, options, now),
    ...outdated.map((row) => startDeletion(change.state, row, now)),
  ];
  return {
    ...change,
    state: { ...change.state, capturing: { snapshot_id, provisioner, home_backup_id: null } },
    writes: [...change.writes, ...parts.flatMap(({ writes }) => writes)],
    effects: [...change.effects, ...parts.flatMap(({ effects }) => effects)],
  };
};

/** Returns the policy's snapshots to delete, so that `keep` remain after one is added. */
export const selectOutdated = (
  snapshots: readonly SnapshotRow[],
  keep: number,
  restoring: readonly string[],
): SnapshotRow[] =>
  snapshots
    .filter(({ reason, status }) => reason === "stop" && (status === "ready" || status === "failed"))
    .slice(Math.max(keep - 1, 0))
    .filter(({ id }) => !restoring.includes(id));

const auditSnapshot = (
  { workspace }: WorkspaceState,
  { id, name, reason }: Pick<SnapshotRow, "id" | "name" | "reason">,
  action: "create" | "delete",
  now: number,
): Statement[] => {
  // Snapshots for home backups are created and deleted every day, so only the backups are logged.
  if (reason === "backup") return [];
  const entry = insertAudit({
    now,
    action,
    resource_type: "workspace_snapshot",
    resource_id: id,
    target: name || workspace.name,
    organization_id: workspace.organization_id,
    workspace_id: workspace.id,
    ...(action === "create" ? { after: { name, reason } } : { before: { name, reason } }),
    additional: { workspace_name: workspace.name, workspace_id: workspace.id },
  });
  return [entry];
};
