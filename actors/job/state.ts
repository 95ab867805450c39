// Decides the state transitions of a job (facts/platform 2.1; rules JB-4 to JB-8). Used by the job's owner, which is the actor of a
// workspace, template version or dry run. Pure.
import { isActive, type JobFacts, toJobStatus } from "#schema/workspaces/job.ts";

export const PENDING_TIMEOUT_MS = 30 * 60_000;
export const SILENCE_TIMEOUT_MS = 5 * 60_000;
export const CANCEL_TIMEOUT_MS = 3 * 60_000;
/** A job that began this often and was interrupted by restarts of the server does not begin again. */
export const MAX_ATTEMPTS = 2;
/** The same limit for jobs that moved between nodes. A rolling upgrade can move a job several times. */
export const MAX_MOVED_ATTEMPTS = 6;
/** A job that has lost this many workers fails. */
export const MAX_WORKERS = 3;

/** A job's state in the owner's memory. The row has more columns. */
export type JobState = JobFacts & {
  readonly id: string;
  /** An integer key for the rows of the log. */
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

/** Changed columns of the job's row. */
export type JobPatch = Partial<Omit<JobState, "id" | "key" | "created_at">> & { readonly updated_at: number };

/**
 * The attempt to which a report belongs. Absent if the sender does not run the job, or is a node of the previous version.
 */
export type AttemptRef = { readonly attempt?: number | undefined };

/** Returns true if a report belongs to the current attempt. A report of an earlier attempt may arrive after the job was requeued. */
export const isCurrentAttempt = ({ started_at, attempts }: JobState, { attempt }: AttemptRef): boolean =>
  attempt === undefined || (started_at !== null && attempts === attempt);

/** The job to which a report belongs, and its attempt. */
export type JobRunRef = AttemptRef & { readonly job_id: string };

/** Returns true if a report belongs to this job and its current attempt. */
export const isCurrentRun = (job: JobState, run: JobRunRef): boolean =>
  job.id === run.job_id && isActive(job) && isCurrentAttempt(job, run);

export type JobCommand =
  | { readonly type: "start"; readonly now: number; readonly worker: { readonly id: string; readonly name: string } }
  | { readonly type: "cancel"; readonly now: number }
  /** The job has succeeded, or has ended because it was canceled. */
  | ({ readonly type: "complete"; readonly now: number } & AttemptRef)
  | ({ readonly type: "fail"; readonly now: number; readonly error: string; readonly error_code?: string } & AttemptRef)
  /** Requeues or ends a job without a worker, because the server has restarted. Does nothing to a pending job. */
  | ({
      readonly type: "requeue";
      readonly now: number;
      /** Set if the worker was lost, instead of a server restart: the reason for people. */
      readonly lost?: string;
      /** True if another node ran the job. */
      readonly moved?: boolean;
    } & AttemptRef)
  /** Ends the job if its time limit has passed. */
  | { readonly type: "reap"; readonly now: number }
  /** Heartbeat of the worker. */
  | ({ readonly type: "touch"; readonly now: number } & AttemptRef);

/** Returns the change; undefined if the command is not possible in the job's state, for example because a report is late. */
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
      return now < getReapTime(job) ? undefined : toFailed(job, now, formatReapReason(job));
    case "touch":
      return status === "pending" ? undefined : { updated_at: now };
  }
};

/** Sets `started_at` even if the job never started, so that its duration is zero. */
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
  if (lost === undefined && job.attempts >= (moved ? MAX_MOVED_ATTEMPTS : MAX_ATTEMPTS)) {
    const reason = moved
      ? `The job was interrupted ${job.attempts} times: its node changed, or the database did not answer.`
      : `The server stopped ${job.attempts} times during the job.`;
    return toFailed(job, now, reason);
  }
  return { started_at: null, worker_id: null, worker_name: "", updated_at: now };
};

/** Returns the time, in milliseconds since 1970, at which the job is ended unless its worker has sent a report. */
export const getReapTime = (job: JobState): number => {
  if (job.canceled_at !== null) return job.canceled_at + CANCEL_TIMEOUT_MS;
  return job.updated_at + (job.started_at === null ? PENDING_TIMEOUT_MS : SILENCE_TIMEOUT_MS);
};

/** Returns why the job was ended, for people. */
export const formatReapReason = (job: JobState): string => {
  const formatMinutes = (ms: number): string => `${ms / 60_000} minutes`;
  if (job.canceled_at !== null)
    return `The job did not end within ${formatMinutes(CANCEL_TIMEOUT_MS)} after it was cancelled.`;
  if (job.started_at === null)
    return `No worker picked up the job for ${formatMinutes(PENDING_TIMEOUT_MS)}, so it was abandoned.`;
  return `The job sent no updates for ${formatMinutes(SILENCE_TIMEOUT_MS)}, so it was abandoned.`;
};
