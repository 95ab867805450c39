// Copies of a workspace's files, which a provisioner makes where it can: at one moment, of everything that a workspace keeps while it is
// stopped. A copy is there whole or not at all, and every call may be repeated after a crash.
import type { SnapshotMethod } from "#schema/workspaces/snapshot.ts";

/** Where a copy is: the workspace whose files it has, and its own id. */
export type SnapshotPlace = { readonly workspace_id: string; readonly snapshot_id: string };

export type Captured = {
  readonly method: SnapshotMethod;
  /** What it holds; files that share their space with the workspace count whole. */
  readonly bytes: number;
};

/** The files of a copy as one tar archive, such as a home backup stores it. */
export type Packed = {
  /** Names of Docker volumes, each a folder of the archive; empty where the archive is of a home. */
  readonly volumes: readonly string[];
  /** Ends with an error unless it is whole. */
  readonly stream: AsyncIterable<Uint8Array>;
};

export interface Homes {
  /** Names the way in which the next copy of the workspace's files would be made. */
  method(workspace_id: string): Promise<SnapshotMethod>;
  /**
   * Makes the copy while everything that could write stands still. Answers what is there where it was made before. Rejects with ProvisionError,
   * and with the signal's reason when it was cancelled; nothing is left then, and the workspace goes on.
   */
  capture(place: SnapshotPlace, signal: AbortSignal): Promise<Captured>;
  /** Reads the files of a copy, for `use` alone. Rejects with ProvisionError. */
  pack<T>(place: SnapshotPlace, signal: AbortSignal, use: (packed: Packed) => Promise<T>): Promise<T>;
  /** Makes a copy out of an archive instead of the workspace's files, which go on. Otherwise as `capture`. */
  unpack(place: SnapshotPlace, packed: Packed, signal: AbortSignal): Promise<Captured>;
  /** Removes the copy with what an unfinished one has left, and lets the workspace go on; no error when there is none. */
  discard(place: SnapshotPlace): Promise<void>;
}
