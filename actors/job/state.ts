// State transitions of a provisioner job as pure functions (facts/platform 2.1; rules JB-4 to JB-8). Used by the job's owner: the workspace
// actor for builds, the template-version actor for imports. Late commands return undefined.
import { isActive, type JobFacts, toJobStatus } from "#schema/workspaces/job.ts";

export const PENDING_TIMEOUT_MS = 30 * 60_000;
export const SILENCE_TIMEOUT_MS = 5 * 60_000;
export const CANCEL_TIMEOUT_MS = 3 * 60_000;
/** A job that server restarts interrupted this many times is not begun again. */
export const MAX_ATTEMPTS = 2;
/** The same limit for jobs that moved between nodes. It is higher, because a rolling upgrade can move a job several times. */
export const MAX_MOVED_ATTEMPTS = 6;
/** A job that lost this many workers is not given to another one. */
export const MAX_WORKERS = 3;

/** A job's state in the owner's memory; the row has more columns. */
export type JobState = JobFacts & {
  readonly id: string;
  /** Integer key, used by the logs. */
  readonly key: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly error_code: string;
  readonly worker_id: string | null;
  readonly worker_name: string;
  /** How often a worker has begun the job. */
  readonly attempts: number;
  readonly logs_length: number;
  readonly logs_overflowed: boolean;
};

/** The initial state of a job. */
export const PENDING = {
  worker_id: null,
  worker_name: "",
  attempts: 0,
  error: "",
  error_code: "",
  started_at: null,
  canceled_at: null,
  completed_at: null,
  logs_length: 0,
  logs_overflowed: false,
} as const;

/** Columns of `jobs` to write. Apply with `{...job, ...patch}`. */
export type JobPatch = Partial<Omit<JobState, "id" | "key" | "created_at">> & { readonly updated_at: number };

/**
 * The attempt that a report belongs to. Reports of an earlier attempt can arrive after the server lost a run or its shard moved. Absent:
 * the sender does not work on the job, or is a node of the previous version.
 */
export type AttemptRef = { readonly attempt?: number | undefined };

/**
 * Returns whether a report belongs to the current run. Reports of earlier runs are ignored once the job has begun again or is pending
 * again.
 */
export const isCurrentAttempt = ({ started_at, attempts }: JobState, { attempt }: AttemptRef): boolean =>
  attempt === undefined || (started_at !== null && attempts === attempt);

/** The run that a report belongs to; without an attempt, the current one. */
export type JobRunRef = AttemptRef & { readonly job_id: string };

/** Returns whether a report belongs to this job and its current run. */
export const isCurrentRun = (job: JobState, run: JobRunRef): boolean =>
  job.id === run.job_id && isActive(job) && isCurrentAttempt(job, run);

export type JobCommand =
  | { readonly type: "start"; readonly now: number; readonly worker: { readonly id: string; readonly name: string } }
  | { readonly type: "cancel"; readonly now: number }
  /** The work succeeded, or ended because it was canceled. */
  | ({ readonly type: "complete"; readonly now: number } & AttemptRef)
  | ({ readonly type: "fail"; readonly now: number; readonly error: string; readonly error_code?: string } & AttemptRef)
  /** The server has restarted, so the job has no worker: requeues or ends it. Does nothing to a pending job. */
  | ({
      readonly type: "requeue";
      readonly now: number;
      /** Set if the worker was lost rather than the server; the reason for people. */
      readonly lost?: string;
      /** Whether another node ran the job. */
      readonly moved?: boolean;
    } & AttemptRef)
  /** Checks the time limits. Does nothing before they have passed. */
  | { readonly type: "reap"; readonly now: number }
  /** Heartbeat of the worker. */
  | ({ readonly type: "touch"; readonly now: number } & AttemptRef);

/** Returns the change, or undefined when the command does not apply in the job's state (a late report is `stale`). */
export const transitionJob = (job: JobState, command: JobCommand): JobPatch | undefined => {
  if (!isActive(job) || ("attempt" in command && !isCurrentAttempt(job, command))) return undefined;
  const { now } = command;
  const status = toJobStatus(job);
  switch (command.type) {
    case "start":
      if (status !== "pending") return undefined;
      return {
        started_at: now,
        updated_at: now,
        worker_id: command.worker.id,
        worker_name: command.worker.name,
        attempts: job.attempts + 1,
      };
    case "cancel":
      if (status === "canceling") return undefined;
      // A pending job has no worker to wait for.
      return { canceled_at: now, updated_at: now, ...(status === "pending" ? { completed_at: now } : {}) };
    case "complete":
      return status === "pending" ? undefined : { completed_at: now, updated_at: now };
    case "fail":
      return toFailed(job, now, command.error, command.error_code);
    case "requeue":
      return toRequeued(job, command);
    case "reap":
      return now < reapDue(job) ? undefined : toFailed(job, now, reapReason(job));
    case "touch":
      return status === "pending" ? undefined : { updated_at: now };
  }
};

// Sets started_at even if the job never started, so that its duration is zero rather than negative.
const toFailed = (job: JobState, now: number, error: string, code = ""): JobPatch => ({
  completed_at: now,
  updated_at: now,
  error: error || "The job failed.",
  error_code: code,
  ...(job.started_at === null ? { started_at: now } : {}),
});

const toRequeued = (
  job: JobState,
  { now, lost, moved }: Extract<JobCommand, { type: "requeue" }>,
): JobPatch | undefined => {
  if (job.started_at === null) return undefined;
  if (job.canceled_at !== null) return { completed_at: now, updated_at: now };
  if (lost !== undefined && job.attempts >= MAX_WORKERS) {
    return toFailed(job, now, `${lost} ${job.attempts} workers were tried.`);
  }
  if (lost === undefined && job.attempts >= (moved ? MAX_MOVED_ATTEMPTS : MAX_ATTEMPTS))
    return toFailed(
      job,
      now,
      moved ? formatInterrupted(job.attempts) : `The server stopped ${job.attempts} times during the job.`,
    );
  return { started_at: null, worker_id: null, worker_name: "", updated_at: now };
};

const formatInterrupted = (attempts: number): string =>
  `The job was interrupted ${attempts} times: its node changed, or the database did not answer.`;

/** Returns when the job must be ended by force unless its worker reports, in milliseconds since 1970. */
export const reapDue = (job: JobState): number => {
  if (job.canceled_at !== null) return job.canceled_at + CANCEL_TIMEOUT_MS;
  return job.updated_at + (job.started_at === null ? PENDING_TIMEOUT_MS : SILENCE_TIMEOUT_MS);
};

/** Returns why a job was reaped, as a message for people. */
export const reapReason = (job: JobState): string => {
  const formatMinutes = (ms: number): string => `${ms / 60_000} minutes`;
  if (job.canceled_at !== null)
    return `The job did not end within ${formatMinutes(CANCEL_TIMEOUT_MS)} after it was cancelled.`;
  if (job.started_at === null)
    return `No worker picked up the job for ${formatMinutes(PENDING_TIMEOUT_MS)}, so it was abandoned.`;
  return `The job sent no updates for ${formatMinutes(SILENCE_TIMEOUT_MS)}, so it was abandoned.`;
};
