// Wire shapes of provisioner jobs, and their status, which is derived from the times (facts/platform 2.1).
import { type Static, Type as t } from "@sinclair/typebox";
import { iconUrl, optionalTime, time, uuid } from "../fields.ts";
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
  oneOf(JOB_STATUSES, "The status of the job. `pending`, `running` and `canceling` are active; the others are final."),
);

export const ProvisionerJob = namedObject("ProvisionerJob", {
  id: uuid("The ID of the job."),
  created_at: time(),
  started_at: optionalTime("When a worker took the job."),
  completed_at: optionalTime("When the job ended, whether it succeeded or not."),
  canceled_at: optionalTime("When cancellation was requested."),
  error: t.Optional(t.String({ description: "Why the job failed." })),
  error_code: t.Optional(
    t.String({
      description:
        "The machine-readable cause of some failures, such as REQUIRED_TEMPLATE_VARIABLES or INSUFFICIENT_QUOTA.",
    }),
  ),
  status: JobStatus,
  worker_id: t.Optional(uuid("The ID of the worker that took the job.")),
  worker_name: t.String({ description: "The name of the worker; empty until one has taken the job." }),
  file_id: uuid("The ID of the upload that the template version was created from."),
  tags: t.Record(t.String(), t.String(), { description: "The tags that a worker must have to take the job." }),
  queue_position: t.Integer({ description: "The job's position in the queue, starting at 1; 0 if it is not queued." }),
  queue_size: t.Integer({ description: "The number of queued jobs." }),
  organization_id: uuid("The ID of the organization."),
  initiator_id: uuid("The ID of the user who requested the job."),
  input: t.Object({
    template_version_id: t.Optional(
      uuid("The ID of the version that is imported or tried. Only for imports and dry runs."),
    ),
    workspace_build_id: t.Optional(uuid("The ID of the build. Only for builds.")),
    error: t.Optional(t.String({ description: "Never set. Kept for older clients." })),
  }),
  type: named("ProvisionerJobType", oneOf(JOB_TYPES, "The type of the job.")),
  available_workers: t.Array(uuid(), { description: "The IDs of workers that could take the job." }),
  metadata: t.Object(
    {
      template_version_name: t.String(),
      template_id: uuid("The ID of the template; all zeros if the version doesn't belong to one yet."),
      template_name: t.String({
        description: "The name of the template; empty if the version doesn't belong to one yet.",
      }),
      template_display_name: t.String(),
      template_icon: iconUrl,
      workspace_id: t.Optional(uuid("The ID of the workspace. Only for builds.")),
      workspace_name: t.Optional(t.String({ description: "The name of the workspace. Only for builds." })),
      workspace_build_transition: t.Optional(
        t.String({ description: "The transition of the build: `start`, `stop` or `delete`. Only for builds." }),
      ),
    },
    { description: "The names of the affected resources." },
  ),
  logs_overflowed: t.Boolean({ description: "Whether lines were dropped because the log reached its limit." }),
});
export type ProvisionerJob = Static<typeof ProvisionerJob>;

export const JobLog = namedObject("ProvisionerJobLog", {
  id: t.Integer({
    description: "The line's ID, which increases within the job. Used as the cursor in `after` and `before`.",
  }),
  created_at: time(),
  log_source: named(
    "ProvisionerJobLogSource",
    oneOf(
      JOB_LOG_SOURCES,
      "The source of the line. `provisioner`: the provisioner itself. `provisioner_daemon`: the worker that runs it.",
    ),
  ),
  log_level: LogLevel,
  stage: t.String({ description: "The name of the build stage." }),
  output: t.String({ description: "The text of one line, without the line feed." }),
});
export type JobLog = Static<typeof JobLog>;

export const MatchedProvisioners = namedObject("MatchedProvisioners", {
  count: t.Integer({ description: "The number of workers with matching tags." }),
  available: t.Integer({ description: "The number of matching workers that have reported recently." }),
  most_recently_seen: optionalTime("When one of these workers last sent a heartbeat."),
});
export type MatchedProvisioners = Static<typeof MatchedProvisioners>;

/** The data from which a job's status is derived; times in milliseconds since 1970. */
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
