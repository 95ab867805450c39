// Wire shapes of workspace agents (specification "Workspace agent", facts/platform 1.1 and 2.5).
import { type Static, Type as t } from "@sinclair/typebox";
import { optionalTime, time, uuid } from "../fields.ts";
import { NullableUuid } from "../nullable-uuid.ts";
import { named, namedObject } from "../shape-names.ts";
import { eventFramesWithoutPing } from "../socket-event.ts";
import { App } from "../workspaces/app.ts";
import { LogSource } from "./log-source.ts";
import { AgentResources } from "./resources.ts";

export const AGENT_STATUSES = ["connecting", "connected", "disconnected", "timeout"] as const;
export type AgentStatus = (typeof AGENT_STATUSES)[number];

/** In the order an agent goes through them; the protocol's enum starts at 1. */
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

const oneOf = <const V extends readonly string[]>(values: V, description?: string) =>
  t.Unsafe<V[number]>(
    t.Union(
      values.map((value: V[number]) => t.Literal(value)),
      description ? { description } : {},
    ),
  );

export const AgentStatus = named(
  "AgentStatus",
  oneOf(AGENT_STATUSES, "The agent's connection status, derived from the time of its last message."),
);

export const AgentScript = namedObject("AgentScript", {
  id: uuid(),
  log_source_id: uuid("The ID of the log source for the script's output."),
  log_path: t.String(),
  display_name: t.String(),
  script: t.String(),
  cron: t.String({ description: "The script's cron schedule; empty if it has none." }),
  run_on_start: t.Boolean(),
  run_on_stop: t.Boolean(),
  start_blocks_login: t.Boolean({ description: "Whether connections wait until the script has finished." }),
  is_dotfiles: t.Optional(
    t.Literal(true, {
      description: "Whether the script installs the owner's dotfiles. Other start scripts wait for it.",
    }),
  ),
  timeout: t.Integer({ description: "The script's timeout in nanoseconds; 0 means no timeout." }),
  status: t.Optional(
    named("AgentScriptStatus", oneOf(SCRIPT_STATUSES, "How the last run ended; absent until the script has run.")),
  ),
  exit_code: t.Optional(t.Integer({ description: "The exit code of the last run; absent until the script has run." })),
});

export const AgentMetadata = namedObject("AgentMetadata", {
  description: t.Object({
    display_name: t.String(),
    key: t.String(),
    script: t.String(),
    interval: t.Integer({ description: "The interval between measurements, in seconds." }),
    timeout: t.Integer({ description: "The timeout of a measurement, in seconds." }),
  }),
  result: t.Object({
    collected_at: time("When the value was measured; 0001-01-01T00:00:00Z if it hasn't been measured yet."),
    age: t.Integer({ description: "The number of seconds since the value was measured." }),
    value: t.String(),
    error: t.String(),
  }),
});

/** A message of the WebSocket that streams an agent's metadata. */
export const MetadataFrame = eventFramesWithoutPing("AgentMetadata", t.Array(AgentMetadata));

export const WorkspaceAgent = namedObject("WorkspaceAgent", {
  id: uuid(),
  parent_id: NullableUuid,
  resource_id: uuid(),
  name: t.String(),
  status: AgentStatus,
  lifecycle_state: named(
    "AgentLifecycleState",
    oneOf(LIFECYCLE_STATES, "The lifecycle state that the agent last reported."),
  ),
  health: t.Object({
    healthy: t.Boolean(),
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
  architecture: t.String(),
  operating_system: t.String(),
  directory: t.String(),
  expanded_directory: t.String({
    description: "The agent's directory with variables expanded, as reported by the agent.",
  }),
  instance_id: t.String(),
  version: t.String(),
  api_version: t.String(),
  environment_variables: t.Record(t.String(), t.String()),
  display_apps: t.Array(t.String()),
  subsystems: t.Array(named("AgentSubsystem", oneOf(SUBSYSTEMS))),
  startup_script_behavior: oneOf(["blocking", "non-blocking"] as const),
  troubleshooting_url: t.String(),
  logs_length: t.Integer({ description: "The size of the agent's stored log output, in bytes." }),
  logs_overflowed: t.Boolean({ description: "Whether lines were dropped because the log reached its limit." }),
  resources: t.Optional(AgentResources),
  latency: t.Record(t.String(), t.Object({ latency_ms: t.Number(), preferred: t.Boolean() })),
  apps: t.Array(App),
  scripts: t.Array(AgentScript),
  log_sources: t.Array(LogSource),
  metadata: t.Array(AgentMetadata),
});
export type WorkspaceAgent = Static<typeof WorkspaceAgent>;
