// What a queue of jobs and those of other nodes know of each other: jobs without their work, places, and workers, which are connected to the
// first node (far-jobs.ts).
import type { WorkerPlace } from "#src/provisioners/external/tags.ts";

/** Human-started work goes before prebuilds (facts/platform 2.1). */
export type Urgency = "person" | "background";

export type Tags = Readonly<Record<string, string>>;

/** The actor that a job is of. */
export type JobOwner = { readonly kind: "build" | "import" | "dry_run"; readonly id: string };

/** A job without its work. */
export type NamedJob = {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly created_at: number;
  readonly urgency: Urgency;
  /** What a worker must have; default: what the built-in one has. */
  readonly tags?: Tags;
  /** Of which part its owner is (src/base/parts.ts). */
  readonly part?: number | undefined;
  readonly of?: JobOwner;
};

/** A worker, as far as it matters for which jobs it may take. */
export type PresentWorker = WorkerPlace & { readonly id: string };

export type PlaceInQueue = { readonly queue_position: number; readonly queue_size: number };

/** What other nodes show of a queue: the first of those who wait for the built-in worker, and of those who wait for others, in their order. */
export type QueueView = {
  /** Another one whenever anything else may be another. */
  readonly version: string;
  readonly waiting: readonly { readonly ids: readonly string[]; readonly size: number }[];
  readonly workers: readonly PresentWorker[];
};

export interface OtherQueues {
  /** Jobs with these tags are the first node's to run, and this is another one. */
  takes(tags: Tags): boolean;
  submit(job: NamedJob): void;
  /** The first node may have it already: it is asked, and the job's owner hears when it has not. */
  follow(job: Pick<NamedJob, "id" | "part" | "of">): void;
  cancel(id: string, reason: string): void;
  holds(id: string): boolean;
  workersFor(tags: Tags): readonly string[];
  /** Of a job that waits on another node. */
  position(id: string): PlaceInQueue | undefined;
  /** Called when `position`, or with `workers` also `workersFor`, may answer otherwise. */
  onChange(listener: (workers: boolean) => void): void;
  /** These parts are another node's. */
  leave(isLeaving: (part: number) => boolean): void;
}
