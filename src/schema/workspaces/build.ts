// Wire shapes of builds (specification "Build", "Workspace build timings") and the status derived from job and transition
// (facts/platform 2.1).
import { type Static, Type as t } from "@sinclair/typebox";
import { optionalTime, time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { type JobStatus, MatchedProvisioners, ProvisionerJob } from "./job.ts";
import { Resource } from "./resource.ts";
import { type Transition, WorkspaceTransition } from "./transition.ts";

export const BUILD_STATUSES = [
  "pending",
  "starting",
  "running",
  "stopping",
  "stopped",
  "failed",
  "canceling",
  "canceled",
  "deleting",
  "deleted",
] as const;
export type BuildStatus = (typeof BUILD_STATUSES)[number];

export const BUILD_REASONS = [
  "initiator",
  "autostart",
  "autostop",
  "dormancy",
  "autodelete",
  "dashboard",
  "cli",
  "ssh_connection",
  "vscode_connection",
  "jetbrains_connection",
  "task_auto_pause",
  "task_manual_pause",
  "task_resume",
] as const;

/** Reasons a caller can give; used only with start and stop (facts/platform 1.2). */
export const CALLER_REASONS = [
  "dashboard",
  "cli",
  "ssh_connection",
  "vscode_connection",
  "jetbrains_connection",
  "task_manual_pause",
  "task_resume",
] as const;

const STATUSES_BY_TRANSITION: Record<Transition, [running: BuildStatus, succeeded: BuildStatus]> = {
  start: ["starting", "running"],
  stop: ["stopping", "stopped"],
  delete: ["deleting", "deleted"],
};

/** Derives the status by the second table of facts/platform 2.1. */
export const buildStatus = (job: JobStatus, transition: Transition): BuildStatus => {
  if (job === "running") return STATUSES_BY_TRANSITION[transition][0];
  if (job === "succeeded") return STATUSES_BY_TRANSITION[transition][1];
  return job === "unknown" ? "failed" : job;
};

export const BuildReason = named(
  "BuildReason",
  oneOf(
    BUILD_REASONS,
    "What started the build. `initiator`: a user's request without a reason. `autostart`, `autostop`, `autodelete`, `task_auto_pause`: the schedule. `dormancy`: the workspace became dormant. The others: the page or program that a user used.",
  ),
);
export const WorkspaceStatus = named(
  "WorkspaceStatus",
  oneOf(BUILD_STATUSES, "The status of the workspace, derived from the build's job status and transition."),
);

export const Build = namedObject("WorkspaceBuild", {
  id: uuid(),
  created_at: time(),
  updated_at: time(),
  workspace_id: uuid(),
  workspace_name: t.String(),
  workspace_owner_id: uuid(),
  workspace_owner_name: t.String({ description: "The username of the workspace's owner." }),
  workspace_owner_avatar_url: t.Optional(
    t.String({ description: "The URL of the avatar; absent if the owner has none." }),
  ),
  template_version_id: uuid(),
  template_version_name: t.String(),
  template_version_preset_id: t.Optional(uuid("The ID of the preset; absent if none was used.")),
  build_number: t.Integer({ description: "The number of the build within the workspace, starting at 1." }),
  transition: WorkspaceTransition,
  initiator_id: uuid(
    "The ID of the user who requested the build. For builds by the schedule, the owner of the workspace.",
  ),
  initiator_name: t.String({ description: "The username of that user." }),
  job: ProvisionerJob,
  reason: BuildReason,
  resources: t.Array(Resource, { description: "The resources that the build created; empty until it succeeds." }),
  deadline: optionalTime("When autostop stops the workspace; absent if it doesn't."),
  max_deadline: optionalTime("The latest time that the deadline can be moved to; absent if there is no limit."),
  status: WorkspaceStatus,
  daily_cost: t.Integer({ description: "The daily cost of the build's resources, in credits of the owner's quota." }),
  matched_provisioners: {
    ...MatchedProvisioners,
    description: "The workers that can run the build.",
  },
  has_ai_task: t.Boolean({ description: "Whether the template version declares an AI task." }),
  has_external_agent: t.Boolean({
    description: "Whether the workspace runs on a machine that the server doesn't control.",
  }),
});
export type Build = Static<typeof Build>;

export const ParameterValue = namedObject("ParameterValue", {
  name: t.String({ maxLength: 128, description: "The name of the parameter." }),
  value: t.String({ maxLength: 65_536, description: "The value as text: `3`, `true`, or a JSON array for lists." }),
});

/** The values with which a new workspace is created. */
export const newParameterValues = t.Optional(
  t.Array(ParameterValue, {
    maxItems: 256,
    description: "The parameter values. Omitted parameters use their defaults.",
  }),
);

/** Body of POST /workspaces/{workspace}/builds. */
export const CreateBuild = namedObject("CreateBuild", {
  transition: WorkspaceTransition,
  template_version_id: t.Optional(
    uuid("The ID of a version of the same template; default: the version of the last build."),
  ),
  rich_parameter_values: t.Optional(
    t.Array(ParameterValue, {
      maxItems: 256,
      description: "The parameter values. Omitted parameters keep their values from the last build.",
    }),
  ),
  template_version_preset_id: t.Optional(uuid("The ID of a preset of the template version, whose values apply.")),
  reason: t.Optional(
    t.String({
      description: `The reason for the build: one of ${CALLER_REASONS.join(", ")}. Other values are ignored.`,
    }),
  ),
  log_level: t.Optional(oneOf(["", "debug"] as const, "The log level; `debug` writes more to the build log.")),
  dry_run: t.Optional(t.Boolean({ description: "Must be false: builds don't support dry runs." })),
  state: t.Optional(t.String({ description: "The provisioner state to start from, in Base64. For manual repairs." })),
  permanent: t.Optional(
    t.Boolean({
      description:
        "For `delete`: delete the workspace's files immediately, also from the trash, instead of keeping them there.",
    }),
  ),
  orphan: t.Optional(
    t.Boolean({ description: "For `delete`: abandon the workspace's resources instead of deleting them." }),
  ),
});
export type CreateBuild = Static<typeof CreateBuild>;

export const RestartWorkspace = named(
  "RestartWorkspace",
  strictObject({
    template_version_id: CreateBuild.properties.template_version_id,
    rich_parameter_values: CreateBuild.properties.rich_parameter_values,
    template_version_preset_id: CreateBuild.properties.template_version_preset_id,
    reason: CreateBuild.properties.reason,
  }),
);
export type RestartWorkspace = Static<typeof RestartWorkspace>;

export const BuildTimings = namedObject("WorkspaceBuildTimings", {
  provisioner_timings: t.Array(
    t.Object({
      job_id: uuid(),
      started_at: time(),
      ended_at: time(),
      stage: t.String({ description: "The stage of the build: `init`, `plan`, `graph` or `apply`." }),
      source: t.String({ description: "What performed the step: a provisioner or a Terraform provider." }),
      action: t.String({ description: "What was done, such as `create` or `pull`." }),
      resource: t.String({ description: "The name or address of the resource." }),
    }),
    { description: "The steps of the provisioner." },
  ),
  agent_script_timings: t.Array(
    t.Object({
      started_at: time(),
      ended_at: time(),
      exit_code: t.Integer({ description: "The exit code of the script." }),
      stage: t.String({ description: "When the script ran: `start`, `stop` or `cron`." }),
      status: t.String({ description: "How the script ended, with the values of `AgentScriptStatus`." }),
      display_name: t.String({ description: "The display name of the script." }),
      workspace_agent_id: t.String(),
      workspace_agent_name: t.String(),
    }),
    { description: "The latest run of each script. For a stop, the stop scripts of the workspace." },
  ),
  agent_connection_timings: t.Array(
    t.Object({
      started_at: time("When the build created the agent."),
      ended_at: time("When the agent first connected."),
      stage: t.String({ description: "Always `connect`." }),
      workspace_agent_id: t.String(),
      workspace_agent_name: t.String(),
    }),
    { description: "The time that each agent took to connect." },
  ),
});
export type BuildTimings = Static<typeof BuildTimings>;
