// What the workspace's actor asks of the world, and what it does on its own: interfaces, so that it knows neither the runner of builds nor
// how a build is planned.
import type { BuildRow } from "#db/workspaces/builds.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import type { SnapshotPlace } from "#src/provisioners/homes.ts";
import type { Urgency } from "../runtime/other-queues.ts";
import type { NewBuild } from "./decision.ts";

/** Where the work of builds goes (actors/workspace/build-runner.ts). */
export interface Builds {
  submit(build: SubmittedBuild): void;
  cancel(job_id: string): void;
}

/** Where the work of snapshots goes (actors/workspace/snapshot-runner.ts). */
export interface Snapshots {
  capture(snapshot: SubmittedSnapshot): void;
  discard(snapshot: SubmittedSnapshot): void;
  /** Removes what one that failed has left. */
  clean(snapshot: SubmittedSnapshot): void;
}

export type SubmittedSnapshot = SnapshotPlace & {
  /** Of the workspace: copies wait for others of the same person. */
  readonly owner_id: string;
  readonly provisioner: string;
  /** The home backup that the files come from; null: the workspace. */
  readonly home_backup_id: string | null;
  /** The workspace's. */
  readonly part: number;
};

export type SubmittedBuild = {
  readonly workspace_id: string;
  readonly job_id: string;
  readonly created_at: number;
  readonly tags: Readonly<Record<string, string>>;
  readonly urgency: Urgency;
  /** The workspace's. */
  readonly part: number;
};

/** Builds that the server makes on its own (src/domain/builds/automatic.ts). */
export interface AutomaticBuilds {
  /** The build that follows `last`; reads the store only. Throws AppError when it cannot be made, such as for a missing parameter. */
  plan(workspace: WorkspaceRow, last: BuildRow, input: BuildInput): Promise<NewBuild>;
  /** True when some worker could take a job with these tags. */
  hasWorker(tags: NewBuild["tags"]): boolean;
}

export type BuildInput = Pick<NewBuild, "transition" | "reason" | "initiator_id"> & {
  /** A delete that leaves nothing in the trash. */
  readonly permanent?: boolean;
};
