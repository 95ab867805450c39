// Wire shapes of tasks: a workspace created for one prompt, and the chat that works on the prompt in that workspace.
import { type Static, Type as t } from "@sinclair/typebox";
import { AGENT_STATUSES, LIFECYCLE_STATES } from "../agents/agent.ts";
import { iconUrl } from "../fields.ts";
import { NullableUuid } from "../nullable-uuid.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { lineText } from "../text.ts";
import { BUILD_STATUSES, Build, newParameterValues } from "../workspaces/build.ts";
import { CreateWorkspace } from "../workspaces/workspace.ts";
import { TASK_STATE_WORDS, TASK_STATES } from "./task-state-words.ts";

const uuid = () => t.String({ format: "uuid" });
const time = () => t.String({ format: "date-time" });

export const TASK_STATUSES = ["pending", "initializing", "active", "paused", "unknown", "error"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];
/** Maximum characters of a prompt. */
const MAX_PROMPT_LENGTH = 100_000;
const Prompt = (description: string) => t.String({ minLength: 1, maxLength: MAX_PROMPT_LENGTH, description });

export const TaskState = namedObject("TaskState", {
  timestamp: t.String({ format: "date-time", description: "When the task's chat last changed." }),
  state: named(
    "TaskStateName",
    oneOf(
      TASK_STATES,
      `The state of the task. \`working\`: a turn is running. \`idle\` (shown as "${TASK_STATE_WORDS.idle}"): the chat waits for its owner. \`complete\` (shown as "${TASK_STATE_WORDS.complete}"): the turn has ended. \`failed\`: the turn failed.`,
    ),
  ),
  message: t.String({ description: "A sentence about the state; may be empty." }),
  uri: t.String({ description: "A link to the result, such as a pull request; may be empty." }),
});
export type TaskState = Static<typeof TaskState>;

export const Task = namedObject("Task", {
  id: uuid(),
  organization_id: uuid(),
  owner_id: uuid(),
  owner_name: t.String({ description: "The username of the task's owner." }),
  owner_avatar_url: t.String({ description: "The URL of the owner's avatar; may be empty." }),
  name: t.String({ description: "The name of the task and of its workspace when it was created." }),
  display_name: t.String(),
  template_id: uuid(),
  template_version_id: uuid(),
  template_name: t.String(),
  template_display_name: t.String(),
  template_icon: iconUrl,
  workspace_id: NullableUuid,
  workspace_name: t.String(),
  workspace_status: t.Optional(oneOf(BUILD_STATUSES, "The status of the workspace, derived from its latest build.")),
  workspace_build_number: t.Optional(t.Integer({ description: "The number of the workspace's latest build." })),
  workspace_agent_id: NullableUuid,
  workspace_agent_status: t.Optional(
    oneOf(AGENT_STATUSES, "The connection status of the workspace's agent; absent if there is no agent."),
  ),
  workspace_agent_lifecycle: t.Optional(
    oneOf(LIFECYCLE_STATES, "The lifecycle state of the workspace's agent; absent if there is no agent."),
  ),
  workspace_agent_health: t.Optional(
    t.Object(
      {
        healthy: t.Boolean(),
        reason: t.Optional(t.String({ description: "Why the agent is unhealthy; absent if it is healthy." })),
      },
      { description: "The health of the workspace's agent; absent if there is no agent." },
    ),
  ),
  workspace_app_id: NullableUuid,
  chat_id: NullableUuid,
  coding_agent: t.Optional(
    t.String({ description: "The coding agent of the task's chat; absent if the chat uses a model." }),
  ),
  initial_prompt: t.String({ description: "The prompt that the task was created with." }),
  status: named(
    "TaskStatus",
    oneOf(
      TASK_STATUSES,
      "The status of the task. `pending`: a build is queued, or the workspace is stopping. `initializing`: the workspace is starting. `active`: the chat has the prompt and accepts messages. `paused`: the workspace is stopped. `error`: the build failed, or the prompt can't be delivered. `unknown`: none of these, such as a lost agent.",
    ),
  ),
  current_state: t.Union([TaskState, t.Null()], {
    description: "The state of the task's chat; null until the chat has started.",
  }),
  created_at: time(),
  updated_at: time(),
});
export type Task = Static<typeof Task>;

export const Tasks = namedObject("Tasks", {
  tasks: t.Array(Task),
  count: t.Integer({ description: "The total number of matches, not only on this page." }),
});
export type Tasks = Static<typeof Tasks>;

export const CreateTask = namedObject("CreateTaskRequest", {
  input: Prompt("The prompt that starts the chat."),
  template_id: t.Optional(
    t.String({
      format: "uuid",
      description: "The ID of a template, whose active version is used. Can be omitted with `repository`.",
    }),
  ),
  template_version_id: t.Optional(
    t.String({ format: "uuid", description: "The ID of a template version. Use instead of `template_id`." }),
  ),
  template_version_preset_id: t.Optional(
    t.String({ format: "uuid", description: "The ID of a preset of the template version." }),
  ),
  repository: CreateWorkspace.properties.repository,
  rich_parameter_values: newParameterValues,
  name: t.Optional(
    lineText({
      description:
        "The name of the task and its workspace, under the rules for workspace names. Generated from the prompt if absent or empty.",
    }),
  ),
  display_name: t.Optional(
    lineText({ maxLength: 64, description: "The display name of the task; default: the beginning of the prompt." }),
  ),
  coding_agent: t.Optional(
    t.String({
      maxLength: 64,
      description:
        "The coding agent of the chat. Without this and `model_config_id`, the template's default agent; if it has none, a model is chosen as in new chats.",
    }),
  ),
  model_config_id: t.Optional(
    t.String({ format: "uuid", description: "The ID of the chat's model. Use instead of a coding agent." }),
  ),
  reasoning_effort: t.Optional(
    t.String({ maxLength: 16, description: "The reasoning effort, with the same values as in new chats." }),
  ),
});
export type CreateTask = Static<typeof CreateTask>;

export const TaskInput = namedObject("TaskInputRequest", { input: Prompt("The text of the message or prompt.") });
export type TaskInput = Static<typeof TaskInput>;

export const TaskLog = namedObject("TaskLogEntry", {
  id: t.Integer({ description: "The ID of the entry, which increases with each one. Used as the cursor in `after`." }),
  content: t.String({ description: "The text of the entry." }),
  type: oneOf(["input", "output"], "The author of the entry. `input`: users. `output`: the model."),
  time: time(),
});
export type TaskLog = Static<typeof TaskLog>;

export const TaskLogs = namedObject("TaskLogs", {
  count: t.Integer({ description: "The number of entries in this response." }),
  logs: t.Array(TaskLog, { description: "The log entries, oldest first." }),
  snapshot: t.Optional(
    t.Boolean({
      description: "Whether the log was stored by an agent in the workspace, because the chat has not started yet.",
    }),
  ),
  snapshot_at: t.Optional(
    t.String({ format: "date-time", description: "When the agent stored the log. Only if `snapshot` is true." }),
  ),
});
export type TaskLogs = Static<typeof TaskLogs>;

/** The build that stops or starts the workspace. */
export const TaskBuild = namedObject("TaskBuild", { workspace_build: Build });
