// The data that the job queues of nodes exchange: jobs without their work, positions, and workers, which connect to the first node
// (remote-jobs.ts).
import type { IsLeaving } from "#db/own-rows.ts";
import type { WorkerScope } from "#src/provisioners/external/tags.ts";

/** Work that a person starts goes before prebuilds (facts/platform 2.1). */
export type Urgency = "person" | "background";

export type Tags = Readonly<Record<string, string>>;

/** The actor that owns a job. */
export type JobOwner = { readonly kind: "build" | "import" | "dry_run"; readonly id: string };

/** A job without its work. */
export type NamedJob = {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly created_at: number;
  readonly urgency: Urgency;
  /** Tags that the worker must have; defaults to those of the built-in worker. */
  readonly tags?: Tags;
  /** The owner's `part` (src/base/shards.ts). */
  readonly part?: number | undefined;
  readonly of?: JobOwner;
};

/** A connected worker, with its tags and places, which decide about the jobs that it may take. */
export type PresentWorker = WorkerScope & { readonly id: string };

export type QueuePosition = { readonly queue_position: number; readonly queue_size: number };

/** A queue as other nodes see it: the first jobs that wait for the built-in worker, and the first that wait for others, in order. */
export type QueueView = {
  /** Changes whenever the other members may have changed. */
  readonly version: string;
  readonly waiting: readonly { readonly ids: readonly string[]; readonly size: number }[];
  readonly workers: readonly PresentWorker[];
};

export interface RemoteQueues {
  /** Returns whether jobs with these tags belong to the first node and this is another one. */
  accepts(tags: Tags): boolean;
  submit(job: NamedJob): void;
  /** Tracks a job that the first node may already have. Polling detects whether it has the job, and notifies the owner if it does not. */
  follow(job: Pick<NamedJob, "id" | "part" | "of">): void;
  cancel(id: string, reason: string): void;
  has(id: string): boolean;
  workersFor(tags: Tags): readonly string[];
  /** Returns the position of a job on another node. */
  position(id: string): QueuePosition | undefined;
  /** Called when `position`, or with `workers` also `workersFor`, may have changed. */
  onChange(listener: (workers: boolean) => void): void;
  /** Drops the jobs of rows that another node takes over. */
  release(isLeaving: IsLeaving): void;
}
