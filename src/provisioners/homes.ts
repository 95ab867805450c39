// The interface of provisioners that can take snapshots of a workspace's files. A snapshot is consistent and contains everything that a
// workspace keeps while it is stopped. A snapshot is complete or does not exist. Every call may be repeated after a crash.
import type { SnapshotMethod } from "#schema/workspaces/snapshot.ts";

/** Identifies a snapshot. `workspace_id`: the workspace from which it was taken. */
export type SnapshotRef = { readonly workspace_id: string; readonly snapshot_id: string };

export type CaptureResult = {
  readonly method: SnapshotMethod;
  /** The size of the snapshot, including data that it shares with the workspace. */
  readonly bytes: number;
};

/** The files of a snapshot in one tar archive, as home backups store them. */
export type PackedFiles = {
  /** Names of Docker volumes, each a folder of the archive; empty for an archive of a home. */
  readonly volumes: readonly string[];
  /** The archive. The stream ends with an error if the archive is incomplete. */
  readonly stream: AsyncIterable<Uint8Array>;
};

export interface Homes {
  /** Returns the method of the workspace's next snapshot. */
  method(workspace_id: string): Promise<SnapshotMethod>;
  /**
   * Takes the snapshot while all processes of the workspace are paused. Returns the existing snapshot if it was already taken. Rejects with
   * ProvisionError, or with the signal's reason. In both cases, removes the incomplete snapshot and lets the workspace continue.
   */
  capture(ref: SnapshotRef, signal: AbortSignal): Promise<CaptureResult>;
  /** Reads the files of a snapshot and passes them to `use`. Rejects with ProvisionError. */
  pack<T>(ref: SnapshotRef, signal: AbortSignal, use: (packed: PackedFiles) => Promise<T>): Promise<T>;
  /** Like `capture`, but creates the snapshot from an archive and does not pause the workspace. */
  unpack(ref: SnapshotRef, packed: PackedFiles, signal: AbortSignal): Promise<CaptureResult>;
  /** Removes a complete or partial snapshot and lets the workspace continue. Succeeds if none exists. */
  discard(ref: SnapshotRef): Promise<void>;
}
