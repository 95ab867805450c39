// Wire shapes of provisioner jobs, and their status, which is derived from the times (facts/platform 2.1).
import { type Static, Type as t } from "@sinclair/typebox";
import { optionalTime, time, uuid } from "../fields.ts";
import { LogLevel } from "../log-level.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";

/** A finished step of a job, as stored; times in milliseconds since 1970. */
export type JobTiming = {
  action: string;
  resource: string;
  source: string;
  stage: string;
  started_at: number;
  ended_at: number;
};

export const JOB_STATUSES = ["pending", "running", "succeeded", "canceling", "canceled", "failed", "unknown"] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

export const JOB_TYPES = ["template_version_import", "workspace_build", "template_version_dry_run"] as const;
export type JobType = (typeof JOB_TYPES)[number];

/** The index is the value of the column job_logs.source. */
export const JOB_LOG_SOURCES = ["provisioner_daemon", "provisioner"] as const;
export type JobLogSource = (typeof JOB_LOG_SOURCES)[number];

export const JobStatus = named(
  "ProvisionerJobStatus",
  oneOf(JOB_STATUSES, "Active are pending, running and canceling; the others are final."),
);

export const ProvisionerJob = namedObject("ProvisionerJob", {
  id: uuid("The job."),
  created_at: time(),
  started_at: optionalTime("When a worker took it."),
  completed_at: optionalTime("When it ended, well or not."),
  canceled_at: optionalTime("When its cancellation was requested."),
  error: t.Optional(t.String({ description: "Why it failed." })),
  error_code: t.Optional(
    t.String({ description: "A special cause, such as REQUIRED_TEMPLATE_VARIABLES or INSUFFICIENT_QUOTA." }),
  ),
  status: JobStatus,
  worker_id: t.Optional(uuid("The worker that took it.")),
  worker_name: t.String({ description: "Empty until a worker has taken it." }),
  file_id: uuid("The upload from which the template was created."),
  tags: t.Record(t.String(), t.String(), { description: "The tags that a worker needs to take it." }),
  queue_position: t.Integer({ description: "Position in the queue, starting at 1; 0 if it is not waiting." }),
  queue_size: t.Integer({ description: "How many jobs wait." }),
  organization_id: uuid("The organization of the change."),
  initiator_id: uuid("The user who requested it."),
  input: t.Object({
    template_version_id: t.Optional(uuid()),
    workspace_build_id: t.Optional(uuid()),
    error: t.Optional(t.String()),
  }),
  type: named("ProvisionerJobType", oneOf(JOB_TYPES, "What it is for.")),
  available_workers: t.Array(uuid(), { description: "Workers that could take it." }),
  metadata: t.Object(
    {
      template_version_name: t.String(),
      template_id: uuid(),
      template_name: t.String(),
      template_display_name: t.String(),
      template_icon: t.String(),
      workspace_id: t.Optional(uuid()),
      workspace_name: t.Optional(t.String()),
      workspace_build_transition: t.Optional(t.String()),
    },
    { description: "Names of the affected resources." },
  ),
  logs_overflowed: t.Boolean({ description: "True when lines were dropped because the log had reached its limit." }),
});
export type ProvisionerJob = Static<typeof ProvisionerJob>;

export const JobLog = namedObject("ProvisionerJobLog", {
  id: t.Integer({ description: "Increases within the job; the cursor of `after` and `before`." }),
  created_at: time(),
  log_source: named(
    "ProvisionerJobLogSource",
    oneOf(JOB_LOG_SOURCES, "`provisioner` is the work itself, `provisioner_daemon` what surrounds it."),
  ),
  log_level: LogLevel,
  stage: t.String({ description: "The step of the work, in words." }),
  output: t.String(),
});
export type JobLog = Static<typeof JobLog>;

export const MatchedProvisioners = namedObject("MatchedProvisioners", {
  count: t.Integer({ description: "Workers with matching tags." }),
  available: t.Integer({ description: "Matching workers that have reported recently." }),
  most_recently_seen: optionalTime("When one of them last sent a heartbeat."),
});
export type MatchedProvisioners = Static<typeof MatchedProvisioners>;

/** The data a status is derived from; times in milliseconds since 1970. */
export type JobFacts = {
  readonly error: string;
  readonly started_at: number | null;
  readonly canceled_at: number | null;
  readonly completed_at: number | null;
};

/** Returns the status by the first matching rule of facts/platform 2.1. */
export const toJobStatus = (job: JobFacts): JobStatus => {
  if (job.error !== "") return "failed";
  if (job.completed_at !== null) return job.canceled_at !== null ? "canceled" : "succeeded";
  if (job.canceled_at !== null) return "canceling";
  return job.started_at === null ? "pending" : "running";
};

/** Returns whether the job is pending, running or canceling and can still change. */
export const isActive = (job: JobFacts): boolean => job.completed_at === null && job.error === "";
