// Wire shapes of tasks: a workspace created for one prompt, and the chat that works on it there.
import { type Static, Type as t } from "@sinclair/typebox";
import { AGENT_STATUSES, LIFECYCLE_STATES } from "../agents/agent.ts";
import { NullableUuid } from "../nullable-uuid.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { RepositoryAsked } from "../templates/repository.ts";
import { lineText } from "../text.ts";
import { BUILD_STATUSES, Build, ParameterValue } from "../workspaces/build.ts";
import { TASK_STATE_WORDS, TASK_STATES } from "./task-state-words.ts";

const uuid = () => t.String({ format: "uuid" });
const time = () => t.String({ format: "date-time" });

export const TASK_STATUSES = ["pending", "initializing", "active", "paused", "unknown", "error"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];
/** Maximum characters of a prompt. */
const PROMPT = 100_000;
const Prompt = (description: string) => t.String({ minLength: 1, maxLength: PROMPT, description });

export const TaskState = namedObject("TaskState", {
  timestamp: time(),
  state: named(
    "TaskStateName",
    oneOf(
      TASK_STATES,
      `working: a turn is running. idle (shown as "${TASK_STATE_WORDS.idle}"): the chat waits for its owner. complete (shown as "${TASK_STATE_WORDS.complete}"): the turn has ended. failed: the turn failed.`,
    ),
  ),
  message: t.String({ description: "In a sentence; may be empty." }),
  uri: t.String({ description: "Where to look, such as a pull request; empty for none." }),
});
export type TaskState = Static<typeof TaskState>;

export const Task = namedObject("Task", {
  id: uuid(),
  organization_id: uuid(),
  owner_id: uuid(),
  owner_name: t.String({ description: "The owner's username." }),
  owner_avatar_url: t.String(),
  name: t.String(),
  display_name: t.String(),
  template_id: uuid(),
  template_version_id: uuid(),
  template_name: t.String(),
  template_display_name: t.String(),
  template_icon: t.String(),
  workspace_id: NullableUuid,
  workspace_name: t.String(),
  workspace_status: t.Optional(oneOf(BUILD_STATUSES)),
  workspace_build_number: t.Optional(t.Integer()),
  workspace_agent_id: NullableUuid,
  workspace_agent_status: t.Optional(oneOf(AGENT_STATUSES, "Absent if there is no agent.")),
  workspace_agent_lifecycle: t.Optional(oneOf(LIFECYCLE_STATES, "Absent if there is no agent.")),
  workspace_agent_health: t.Optional(
    t.Object({ healthy: t.Boolean(), reason: t.Optional(t.String()) }, { description: "Absent if there is no agent." }),
  ),
  workspace_app_id: NullableUuid,
  chat_id: NullableUuid,
  coding_agent: t.Optional(t.String({ description: "The coding agent of its chat; absent if the chat uses a model." })),
  initial_prompt: t.String(),
  status: named(
    "TaskStatus",
    oneOf(
      TASK_STATUSES,
      "pending: a build waits, or the workspace is being stopped. initializing: the workspace starts. active: the chat has the prompt and can be talked to. paused: the workspace is stopped. error: the build has failed, or the prompt cannot be given. unknown: none of these, such as a lost agent.",
    ),
  ),
  current_state: t.Union([TaskState, t.Null()], { description: "Null until the chat has started." }),
  created_at: time(),
  updated_at: time(),
});
export type Task = Static<typeof Task>;

export const Tasks = namedObject("Tasks", {
  tasks: t.Array(Task),
  count: t.Integer({ description: "The number of all matches, not only of this page." }),
});
export type Tasks = Static<typeof Tasks>;

export const CreateTask = namedObject("CreateTaskRequest", {
  input: Prompt("The prompt that the chat begins with."),
  template_id: t.Optional(
    t.String({ format: "uuid", description: "Its active version is used. May be left out with `repository`." }),
  ),
  template_version_id: t.Optional(t.String({ format: "uuid", description: "Instead of template_id." })),
  template_version_preset_id: t.Optional(t.String({ format: "uuid", description: "A preset of that version." })),
  repository: t.Optional(RepositoryAsked),
  rich_parameter_values: t.Optional(t.Array(ParameterValue, { maxItems: 256 })),
  name: t.Optional(
    lineText({
      description:
        "Follows the rule for workspace names, since the workspace gets the same name. Generated from the prompt if absent or empty.",
    }),
  ),
  display_name: t.Optional(lineText({ maxLength: 64, description: "Default: the beginning of the prompt." })),
  coding_agent: t.Optional(
    t.String({
      maxLength: 64,
      description:
        "The coding agent that leads the chat. With neither this nor `model_config_id` it is the template's default agent, or else a model as in new chats.",
    }),
  ),
  model_config_id: t.Optional(
    t.String({ format: "uuid", description: "The model of the chat, instead of a coding agent." }),
  ),
  reasoning_effort: t.Optional(t.String({ maxLength: 16, description: "As in new chats." })),
});
export type CreateTask = Static<typeof CreateTask>;

export const TaskInput = namedObject("TaskInputRequest", { input: Prompt("What is said.") });
export type TaskInput = Static<typeof TaskInput>;

export const TaskLog = namedObject("TaskLogEntry", {
  id: t.Integer(),
  content: t.String(),
  type: oneOf(["input", "output"], "input: what people have said. output: what the model has."),
  time: time(),
});
export type TaskLog = Static<typeof TaskLog>;

export const TaskLogs = namedObject("TaskLogs", {
  count: t.Integer({ description: "Of the entries in this answer." }),
  logs: t.Array(TaskLog, { description: "Oldest first." }),
  snapshot: t.Optional(
    t.Boolean({
      description: "True if an agent in the workspace stored the logs, because the chat has not started yet.",
    }),
  ),
  snapshot_at: t.Optional(time()),
});
export type TaskLogs = Static<typeof TaskLogs>;

/** The build that stops or starts the workspace. */
export const TaskBuild = namedObject("TaskBuild", { workspace_build: Build });
