// A provisioner job as callers see it; used by builds and by template versions.
import { rfc3339, rfc3339OrAbsent } from "#base/clock.ts";
import type { JobRow } from "#db/workspaces/jobs.ts";
import { type JobType, jobStatus, type MatchedProvisioners, type ProvisionerJob } from "#schema/workspaces/job.ts";

/** What showing a job needs of the queue (actors/runtime/job-queue.ts). */
export type Queue = {
  position(id: string): { queue_position: number; queue_size: number };
  workersFor(tags: Readonly<Record<string, string>>): readonly string[];
};

/** The columns a shown job is made of. */
export type ShownJob = Omit<JobRow, "key" | "updated_at" | "logs_length" | "timings" | "provisioner">;

/** `metadata` names what the job is about. */
export const presentJob = (job: ShownJob, metadata: ProvisionerJob["metadata"], queue: Queue): ProvisionerJob => ({
  id: job.id,
  created_at: rfc3339(job.created_at),
  started_at: rfc3339OrAbsent(job.started_at),
  completed_at: rfc3339OrAbsent(job.completed_at),
  canceled_at: rfc3339OrAbsent(job.canceled_at),
  error: job.error || undefined,
  error_code: job.error_code || undefined,
  status: jobStatus(job),
  worker_id: job.worker_id ?? undefined,
  worker_name: job.worker_name,
  file_id: job.file_id,
  tags: job.tags,
  ...(job.completed_at === null ? queue.position(job.id) : NOWHERE),
  organization_id: job.organization_id,
  initiator_id: job.initiator_id,
  input: job.input,
  type: job.type as JobType,
  available_workers: [...queue.workersFor(job.tags)],
  metadata,
  logs_overflowed: job.logs_overflowed,
});

/** Of a job that is over: the queue moves on without anything of it being written. */
const NOWHERE = { queue_position: 0, queue_size: 0 } as const;

/** How many workers could take a job with these tags; the built-in worker is always there. */
export const matchedProvisioners = (
  tags: Readonly<Record<string, string>>,
  queue: Queue,
  now: number,
): MatchedProvisioners => {
  const { length } = queue.workersFor(tags);
  return { count: length, available: length, most_recently_seen: length > 0 ? rfc3339(now) : undefined };
};
