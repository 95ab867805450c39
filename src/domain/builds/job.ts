// Presents a provisioner job; used by builds and template versions.
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import type { JobRow } from "#db/workspaces/jobs.ts";
import { type JobType, type MatchedProvisioners, type ProvisionerJob, toJobStatus } from "#schema/workspaces/job.ts";

/** What presenting a job needs from the queue (actors/runtime/job-queue.ts). */
export type Queue = {
  position(id: string): { queue_position: number; queue_size: number };
  workersFor(tags: Readonly<Record<string, string>>): readonly string[];
};

/** The columns of a presented job. */
export type JobColumns = Omit<JobRow, "key" | "updated_at" | "logs_length" | "timings" | "provisioner">;

/** `metadata` names the subject of the job. */
export const presentJob = (job: JobColumns, metadata: ProvisionerJob["metadata"], queue: Queue): ProvisionerJob => ({
  id: job.id,
  created_at: toRfc3339(job.created_at),
  started_at: toOptionalRfc3339(job.started_at),
  completed_at: toOptionalRfc3339(job.completed_at),
  canceled_at: toOptionalRfc3339(job.canceled_at),
  error: job.error || undefined,
  error_code: job.error_code || undefined,
  status: toJobStatus(job),
  worker_id: job.worker_id ?? undefined,
  worker_name: job.worker_name,
  file_id: job.file_id,
  tags: job.tags,
  ...(job.completed_at === null ? queue.position(job.id) : NOT_QUEUED),
  organization_id: job.organization_id,
  initiator_id: job.initiator_id,
  input: job.input,
  type: job.type as JobType,
  available_workers: [...queue.workersFor(job.tags)],
  metadata,
  logs_overflowed: job.logs_overflowed,
});

/** For a finished job, which must not change while the queue moves on. */
const NOT_QUEUED = { queue_position: 0, queue_size: 0 } as const;

/** Returns how many workers can take a job with these tags; the built-in worker always exists. */
export const matchProvisioners = (
  tags: Readonly<Record<string, string>>,
  queue: Queue,
  now: number,
): MatchedProvisioners => {
  const { length } = queue.workersFor(tags);
  return { count: length, available: length, most_recently_seen: length > 0 ? toRfc3339(now) : undefined };
};
