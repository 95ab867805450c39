// The interface of provisioners that can copy a workspace's files. A copy is consistent and contains everything that a workspace keeps
// while it is stopped. A copy is complete or does not exist, and every call may be repeated after a crash.
import type { SnapshotMethod } from "#schema/workspaces/snapshot.ts";

/** Identifies a copy: the ID of the copied workspace, and the ID of the copy. */
export type SnapshotRef = { readonly workspace_id: string; readonly snapshot_id: string };

export type CaptureResult = {
  readonly method: SnapshotMethod;
  /** The size of the copy; data shared with the workspace is counted in full. */
  readonly bytes: number;
};

/** The files of a copy as one tar archive, as home backups store them. */
export type PackedFiles = {
  /** Names of Docker volumes, each a folder of the archive; empty for an archive of a home. */
  readonly volumes: readonly string[];
  /** Ends with an error if the archive is incomplete. */
  readonly stream: AsyncIterable<Uint8Array>;
};

export interface Homes {
  /** Returns the method that the next copy of the workspace's files would use. */
  method(workspace_id: string): Promise<SnapshotMethod>;
  /**
   * Makes the copy while all writers are paused. Returns the existing copy if it was made before. Rejects with ProvisionError, or with the
   * signal's reason if canceled. In both cases, removes the incomplete copy and lets the workspace continue.
   */
  capture(ref: SnapshotRef, signal: AbortSignal): Promise<CaptureResult>;
  /** Reads the files of a copy and passes them to `use`. Rejects with ProvisionError. */
  pack<T>(ref: SnapshotRef, signal: AbortSignal, use: (packed: PackedFiles) => Promise<T>): Promise<T>;
  /** Creates a copy from an archive instead of the workspace's files, which are not paused. Otherwise like `capture`. */
  unpack(ref: SnapshotRef, packed: PackedFiles, signal: AbortSignal): Promise<CaptureResult>;
  /** Removes a complete or partial copy and lets the workspace continue; succeeds if none exists. */
  discard(ref: SnapshotRef): Promise<void>;
}
