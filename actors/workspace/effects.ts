// The interfaces through which the workspace actor starts builds and snapshots and plans automatic builds, so that it does not depend on
// their implementations.
import type { BuildRow } from "#db/workspaces/builds.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import type { SnapshotRef } from "#src/provisioners/homes.ts";
import type { Urgency } from "../runtime/remote-queues.ts";
import type { NewBuild } from "./decision.ts";

/** Accepts builds (actors/workspace/build-runner.ts). */
export interface Builds {
  submit(build: SubmittedBuild): void;
  cancel(job_id: string): void;
}

/** Accepts snapshots (actors/workspace/snapshot-runner.ts). */
export interface Snapshots {
  capture(snapshot: SubmittedSnapshot): void;
  discard(snapshot: SubmittedSnapshot): void;
  /** Deletes the remains of a failed snapshot. */
  clean(snapshot: SubmittedSnapshot): void;
}

export type SubmittedSnapshot = SnapshotRef & {
  /** The workspace's owner. Snapshots of the same owner run one at a time. */
  readonly owner_id: string;
  readonly provisioner: string;
  /** The home backup from which the files are copied; null for the workspace. */
  readonly home_backup_id: string | null;
  /** The workspace's `part`. */
  readonly part: number;
};

export type SubmittedBuild = {
  readonly workspace_id: string;
  readonly job_id: string;
  readonly created_at: number;
  readonly tags: Readonly<Record<string, string>>;
  readonly urgency: Urgency;
  /** The workspace's `part`. */
  readonly part: number;
};

/** Plans builds that the server starts automatically (src/domain/builds/automatic.ts). */
export interface AutomaticBuilds {
  /**
   * Returns the build after `last`. Only reads the store. Throws AppError if no build is possible, for example because a parameter is
   * missing.
   */
  plan(workspace: WorkspaceRow, last: BuildRow, input: BuildInput): Promise<NewBuild>;
  /** Returns true if any worker could take a job with these tags. */
  hasWorker(tags: NewBuild["tags"]): boolean;
}

export type BuildInput = Pick<NewBuild, "transition" | "reason" | "initiator_id"> & {
  /** Set for a delete that bypasses the trash. */
  readonly permanent?: boolean;
};
