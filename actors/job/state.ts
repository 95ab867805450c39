// What can happen to a provisioner job, as pure functions (facts/platform 2.1; rules JB-4 to JB-8). Used by anyone who owns the job: the
// workspace actor for builds, the template-version actor for imports. A command that comes too late answers undefined.
import { isActive, type JobFacts, jobStatus } from "#schema/workspaces/job.ts";

export const PENDING_LIMIT_MS = 30 * 60_000;
export const SILENCE_LIMIT_MS = 5 * 60_000;
export const CANCEL_LIMIT_MS = 3 * 60_000;
/** A job that a stop of the server has interrupted this often is not begun again. */
export const MAX_ATTEMPTS = 2;
/** The same of one that moves between nodes: an upgrade of all of them, one after the other, takes some along several times. */
export const MAX_MOVED_ATTEMPTS = 6;
/** A job that so many workers were lost with is not handed to another. */
export const MAX_WORKERS = 3;

/** What the owner keeps in memory of its job; the row has more. */
export type JobState = JobFacts & {
  readonly id: string;
  /** Integer key, used by the logs. */
  readonly key: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly error_code: string;
  readonly worker_id: string | null;
  readonly worker_name: string;
  /** How often a worker has begun it. */
  readonly attempts: number;
  readonly logs_length: number;
  readonly logs_overflowed: boolean;
};

/** What a job begins with, before anyone works on it. */
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

/** Columns of `jobs` to write; apply with `{...job, ...patch}`. */
export type JobPatch = Partial<Omit<JobState, "id" | "key" | "created_at">> & { readonly updated_at: number };

/**
 * Of which attempt a report is: the server may have lost a run, or its part may have left, with words of it still on their way. Absent: of nobody who
 * works on the job, or of a node of the version before.
 */
export type OfRun = { readonly attempt?: number | undefined };

/** Whether a report is of the run that continues. One that has begun again since, or waits to, hears nothing of the run before. */
export const isOfRun = ({ started_at, attempts }: JobState, { attempt }: OfRun): boolean =>
  attempt === undefined || (started_at !== null && attempts === attempt);

/** A run in what is reported of it; without an attempt it is whichever continues. */
export type RunOf = OfRun & { readonly job_id: string };

/** Whether a report is of this job, and of its run that continues. */
export const isForJob = (job: JobState, run: RunOf): boolean =>
  job.id === run.job_id && isActive(job) && isOfRun(job, run);

export type JobCommand =
  | { readonly type: "start"; readonly now: number; readonly worker: { readonly id: string; readonly name: string } }
  | { readonly type: "cancel"; readonly now: number }
  /** The work succeeded, or has ended because it was told to cancel. */
  | ({ readonly type: "complete"; readonly now: number } & OfRun)
  | ({ readonly type: "fail"; readonly now: number; readonly error: string; readonly error_code?: string } & OfRun)
  /** The server has started again, so nobody works on it: back into the queue, or ended. Nothing happens to a pending job. */
  | ({
      readonly type: "requeue";
      readonly now: number;
      /** Not the server but its worker has gone, in words. */
      readonly lost?: string;
      /** Another node has had it. */
      readonly moved?: boolean;
    } & OfRun)
  /** The time limits are checked; nothing happens before they have passed. */
  | { readonly type: "reap"; readonly now: number }
  /** The worker is alive. */
  | ({ readonly type: "touch"; readonly now: number } & OfRun);

/** The change, or undefined when the command does not apply in the job's state (a late report is `stale`). */
export const transitionJob = (job: JobState, command: JobCommand): JobPatch | undefined => {
  if (!isActive(job) || ("attempt" in command && !isOfRun(job, command))) return undefined;
  const { now } = command;
  const status = jobStatus(job);
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
      // Nobody has a pending job, so there is nobody to wait for.
      return { canceled_at: now, updated_at: now, ...(status === "pending" ? { completed_at: now } : {}) };
    case "complete":
      return status === "pending" ? undefined : { completed_at: now, updated_at: now };
    case "fail":
      return failed(job, now, command.error, command.error_code);
    case "requeue":
      return requeued(job, command);
    case "reap":
      return now < reapDue(job) ? undefined : failed(job, now, reapReason(job));
    case "touch":
      return status === "pending" ? undefined : { updated_at: now };
  }
};

// A job that never started has started_at set too, so that its duration is zero and not negative.
const failed = (job: JobState, now: number, error: string, code = ""): JobPatch => ({
  completed_at: now,
  updated_at: now,
  error: error || "The job failed.",
  error_code: code,
  ...(job.started_at === null ? { started_at: now } : {}),
});

const requeued = (
  job: JobState,
  { now, lost, moved }: Extract<JobCommand, { type: "requeue" }>,
): JobPatch | undefined => {
  if (job.started_at === null) return undefined;
  if (job.canceled_at !== null) return { completed_at: now, updated_at: now };
  if (lost !== undefined && job.attempts >= MAX_WORKERS) {
    return failed(job, now, `${lost} ${job.attempts} workers were tried.`);
  }
  if (lost === undefined && job.attempts >= (moved ? MAX_MOVED_ATTEMPTS : MAX_ATTEMPTS))
    return failed(
      job,
      now,
      moved ? interruptedOften(job.attempts) : `The server stopped ${job.attempts} times during the job.`,
    );
  return { started_at: null, worker_id: null, worker_name: "", updated_at: now };
};

const interruptedOften = (attempts: number): string =>
  `The job was interrupted ${attempts} times: its node changed, or the database did not answer.`;

/** When the job has to be ended by force if nothing more is heard; milliseconds since 1970. */
export const reapDue = (job: JobState): number => {
  if (job.canceled_at !== null) return job.canceled_at + CANCEL_LIMIT_MS;
  return job.updated_at + (job.started_at === null ? PENDING_LIMIT_MS : SILENCE_LIMIT_MS);
};

/** Why a reaped job ended, in words for people. */
export const reapReason = (job: JobState): string => {
  const minutes = (ms: number): string => `${ms / 60_000} minutes`;
  if (job.canceled_at !== null) return `The job did not end within ${minutes(CANCEL_LIMIT_MS)} after it was cancelled.`;
  if (job.started_at === null)
    return `No worker picked up the job for ${minutes(PENDING_LIMIT_MS)}, so it was abandoned.`;
  return `The job sent no updates for ${minutes(SILENCE_LIMIT_MS)}, so it was abandoned.`;
};
