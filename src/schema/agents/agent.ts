// Wire shapes of workspace agents (specification "Workspace agent", facts/platform 1.1 and 2.5).
import { type Static, Type as t } from "@sinclair/typebox";
import { optionalTime, time, uuid } from "../fields.ts";
import { NullableUuid } from "../nullable-uuid.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { eventFramesWithoutPing } from "../socket-event.ts";
import { App } from "../workspaces/app.ts";
import { LogSource } from "./log-source.ts";
import { AgentResources } from "./resources.ts";

export const AGENT_STATUSES = ["connecting", "connected", "disconnected", "timeout"] as const;
export type AgentStatus = (typeof AGENT_STATUSES)[number];

/** In the order in which an agent goes through them. The protocol's enum starts at 1. */
export const LIFECYCLE_STATES = [
  "created",
  "starting",
  "start_timeout",
  "start_error",
  "ready",
  "shutting_down",
  "shutdown_timeout",
  "shutdown_error",
  "off",
] as const;
export type LifecycleState = (typeof LIFECYCLE_STATES)[number];

/** The protocol's enum starts at 1. */
export const SUBSYSTEMS = ["envbox", "envbuilder", "exectrace"] as const;
/** The protocol's enum starts at 0. */
export const SCRIPT_STATUSES = ["ok", "exit_failure", "timed_out", "pipes_left_open"] as const;
export const SCRIPT_STAGES = ["start", "stop", "cron"] as const;

export const AgentStatus = named(
  "AgentStatus",
  oneOf(
    AGENT_STATUSES,
    "The agent's connection status, derived from the time of its last message. `timeout`: it has not connected in time.",
  ),
);

export const AgentScript = namedObject("AgentScript", {
  id: uuid(),
  log_source_id: uuid("The ID of the log source for the script's output."),
  log_path: t.String({
    description: "The file in the workspace that the output is also written to; may be empty.",
  }),
  display_name: t.String(),
  script: t.String({ description: "The text of the script, which a shell in the workspace runs." }),
  cron: t.String({ description: "The script's cron schedule; empty if it has none." }),
  run_on_start: t.Boolean({ description: "Whether the script runs when the workspace starts." }),
  run_on_stop: t.Boolean({ description: "Whether the script runs before the workspace stops." }),
  start_blocks_login: t.Boolean({ description: "Whether connections wait until the script has finished." }),
  is_dotfiles: t.Optional(
    t.Literal(true, {
      description: "Whether the script installs the owner's dotfiles. Other start scripts wait for it.",
    }),
  ),
  timeout: t.Integer({ description: "The script's timeout in nanoseconds; 0 means no timeout." }),
  status: t.Optional(
    named(
      "AgentScriptStatus",
      oneOf(
        SCRIPT_STATUSES,
        "How the last run ended; absent until the script has run. `exit_failure`: with an exit code other than 0. `pipes_left_open`: it ended, but programs that it started still write to its output.",
      ),
    ),
  ),
  exit_code: t.Optional(t.Integer({ description: "The exit code of the last run; absent until the script has run." })),
});

export const AgentMetadata = namedObject("AgentMetadata", {
  description: t.Object({
    display_name: t.String(),
    key: t.String({ description: "The name of the value; unique within the agent." }),
    script: t.String({ description: "The script in the workspace whose output is the value." }),
    interval: t.Integer({ description: "The interval between measurements, in seconds." }),
    timeout: t.Integer({ description: "The timeout of a measurement, in seconds." }),
  }),
  result: t.Object({
    collected_at: time("When the value was measured; 0001-01-01T00:00:00Z if it hasn't been measured yet."),
    age: t.Integer({ description: "The number of seconds since the value was measured." }),
    value: t.String({ description: "The output of the script; at most 2,048 bytes." }),
    error: t.String({ description: "Why the script failed; empty if it succeeded." }),
  }),
});

/** A message of the WebSocket that streams an agent's metadata. */
export const MetadataFrame = eventFramesWithoutPing("AgentMetadata", t.Array(AgentMetadata));

export const WorkspaceAgent = namedObject("WorkspaceAgent", {
  id: uuid(),
  parent_id: NullableUuid,
  resource_id: uuid("The ID of the resource that runs the agent."),
  name: t.String(),
  status: AgentStatus,
  lifecycle_state: named(
    "AgentLifecycleState",
    oneOf(
      LIFECYCLE_STATES,
      "The lifecycle state that the agent last reported. `created`: none yet. `starting`, `shutting_down`: its start or stop scripts are running. `start_timeout`, `shutdown_timeout`: they take longer than allowed. `start_error`, `shutdown_error`: one failed. `off`: the agent has ended.",
    ),
  ),
  health: t.Object({
    healthy: t.Boolean({
      description: "Whether the agent is connected or still expected to connect, and its start scripts didn't fail.",
    }),
    reason: t.Optional(t.String({ description: "Why the agent is unhealthy; absent if it is healthy." })),
  }),
  created_at: time(),
  updated_at: time(),
  first_connected_at: optionalTime("When the agent first connected; absent until it has."),
  last_connected_at: optionalTime("When the agent last sent a message."),
  disconnected_at: optionalTime("When the agent disconnected; absent while it is connected."),
  started_at: optionalTime("When the agent's start scripts began."),
  ready_at: optionalTime("When the agent's start scripts ended."),
  connection_timeout_seconds: t.Integer({
    description: "The agent's connection timeout, in seconds; 0 means no timeout.",
  }),
  architecture: t.String({ description: "The CPU architecture, such as `amd64`; empty if unknown." }),
  operating_system: t.String({
    description: "The operating system: `linux`, `darwin` or `windows`; empty if unknown.",
  }),
  directory: t.String({
    description:
      "The folder in which terminals and scripts start, as the template sets it. If empty, the agent's default.",
  }),
  expanded_directory: t.String({
    description: "The agent's directory with variables expanded, as reported by the agent.",
  }),
  instance_id: t.String({
    description: "The ID of the cloud machine as which the agent signs in; empty if it signs in with a token.",
  }),
  version: t.String({ description: "The version of the agent's program; empty until it has connected." }),
  api_version: t.String({
    description: "The version of the protocol between agent and server; empty until it has connected.",
  }),
  environment_variables: t.Record(t.String(), t.String(), {
    description: "The environment variables that the template sets for the agent.",
  }),
  display_apps: t.Array(t.String(), {
    description:
      "The built-in apps that user interfaces show: vscode, vscode_insiders, web_terminal, port_forwarding_helper or ssh_helper.",
  }),
  subsystems: t.Array(named("AgentSubsystem", oneOf(SUBSYSTEMS)), {
    description: "The programs that the agent runs under, as it reported them.",
  }),
  startup_script_behavior: oneOf(
    ["blocking", "non-blocking"],
    "`blocking`: connections wait for a start script; see `start_blocks_login`.",
  ),
  troubleshooting_url: t.String({
    description: "A page that user interfaces link to while the agent isn't connected; may be empty.",
  }),
  logs_length: t.Integer({ description: "The size of the agent's stored log output, in bytes." }),
  logs_overflowed: t.Boolean({ description: "Whether lines were dropped because the log reached its limit." }),
  resources: t.Optional({
    ...AgentResources,
    description: "The disk space and memory of the workspace; absent until the agent has reported them.",
  }),
  latency: t.Record(
    t.String(),
    t.Object({
      latency_ms: t.Number({ description: "The round-trip time to the region, in milliseconds." }),
      preferred: t.Boolean({ description: "Whether the agent receives connections through this region." }),
    }),
    { description: "The latency by relay region; empty while the agent isn't connected." },
  ),
  apps: t.Array(App),
  scripts: t.Array(AgentScript),
  log_sources: t.Array(LogSource, { description: "What the agent's log lines can come from." }),
  metadata: t.Array(AgentMetadata, { description: "Values that the agent measures regularly, such as CPU usage." }),
});
export type WorkspaceAgent = Static<typeof WorkspaceAgent>;
