// Presents tasks. Their status is derived from the workspace's build, its agent and the chat, and is not stored.
import { toRfc3339 } from "#base/clock.ts";
import { notFound } from "#base/errors.ts";
import { type ChatOutcome, listChatOutcomes } from "#db/chats/chats.ts";
import type { TaskRow } from "#db/tasks/tasks.ts";
import { listWorkspaceViews } from "#db/workspaces/views.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { toChatStatus } from "#schema/chats/chat-status.ts";
import { nullableUuid } from "#schema/nullable-uuid.ts";
import type { Task, TaskState, TaskStatus } from "#schema/tasks/task.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { DomainContext } from "../context.ts";
import { isTopLevel, presentWorkspaces } from "../workspaces/present.ts";

/** Presents tasks in the given order; tasks whose workspace no longer exists are left out. */
export const presentTasks = async (
  ctx: DomainContext,
  tasks: readonly TaskRow[],
  caller: UserCaller,
): Promise<Task[]> => {
  const toJsonIds = (getId: (task: TaskRow) => string): string => JSON.stringify(tasks.map(getId));
  const views = await ctx.store.scan(listWorkspaceViews({ ids: toJsonIds((task) => task.workspace_id) }));
  const workspaces = new Map((await presentWorkspaces(ctx, views, caller)).map((one) => [one.id, one]));
  const chats = new Map(
    (await ctx.store.scan(listChatOutcomes({ ids: toJsonIds((task) => task.chat_id) }))).map((one) => [one.id, one]),
  );
  return tasks.flatMap((task) => {
    const workspace = workspaces.get(task.workspace_id);
    return workspace ? [toTask(task, workspace, chats.get(task.chat_id), caller.compat)] : [];
  });
};

/** Rejects with 404 when its workspace no longer exists. */
export const presentTask = async (ctx: DomainContext, task: TaskRow, caller: UserCaller): Promise<Task> => {
  const [shown] = await presentTasks(ctx, [task], caller);
  if (!shown) throw notFound();
  return shown;
};

const toTask = (task: TaskRow, workspace: Workspace, chat: ChatOutcome | undefined, compat: boolean): Task => {
  const build = workspace.latest_build;
  const agent = build.resources.flatMap(({ agents }) => agents).find((one) => isTopLevel(one));
  return {
    id: task.id,
    organization_id: task.organization_id,
    owner_id: task.owner_id,
    owner_name: workspace.owner_name,
    owner_avatar_url: workspace.owner_avatar_url,
    name: task.name,
    display_name: task.display_name,
    template_id: workspace.template_id,
    template_version_id: build.template_version_id,
    template_name: workspace.template_name,
    template_display_name: workspace.template_display_name,
    template_icon: workspace.template_icon,
    workspace_id: nullableUuid(workspace.id, compat),
    workspace_name: workspace.name,
    workspace_status: build.status,
    workspace_build_number: build.build_number,
    workspace_agent_id: nullableUuid(agent?.id, compat),
    workspace_agent_status: agent?.status,
    workspace_agent_lifecycle: agent?.lifecycle_state,
    workspace_agent_health: agent?.health,
    workspace_app_id: nullableUuid(workspace.latest_app_status?.app_id, compat),
    chat_id: nullableUuid(chat?.id, compat),
    coding_agent: task.coding_agent ?? undefined,
    initial_prompt: task.prompt,
    status: toStatus(task, workspace, agent),
    current_state: toState(task, workspace, chat),
    created_at: toRfc3339(task.created_at),
    updated_at: toRfc3339(Math.max(task.updated_at, chat?.updated_at ?? 0)),
  };
};

type Delivery = Pick<TaskRow, "delivered_at" | "problem">;

/** Returns the status of a task (rule TK-4). */
const toStatus = (
  { delivered_at, problem }: Delivery,
  { latest_build }: Workspace,
  agent: WorkspaceAgent | undefined,
): TaskStatus => {
  switch (latest_build.status) {
    case "pending":
    case "stopping":
    case "canceling":
      return "pending";
    case "starting":
      return "initializing";
    case "stopped":
      return "paused";
    case "failed":
    case "canceled":
      return "error";
    case "running":
      break;
    default:
      return "unknown";
  }
  if (delivered_at === null && problem !== "") return "error";
  if (!agent || agent.status === "disconnected" || agent.status === "timeout") return "unknown";
  return delivered_at === null ? "initializing" : "active";
};

const STATES = {
  running: "working",
  interrupting: "working",
  requires_action: "idle",
  waiting: "complete",
  error: "failed",
} as const;

const toState = (task: TaskRow, workspace: Workspace, chat: ChatOutcome | undefined): TaskState | null => {
  const timestamp = toRfc3339(chat?.updated_at ?? task.updated_at);
  if (!chat) return task.problem === "" ? null : { timestamp, state: "failed", message: task.problem, uri: "" };
  const status = toChatStatus(chat.status);
  const message = status === "error" ? (chat.last_error?.message ?? "") : chat.last_turn_summary;
  return { timestamp, state: STATES[status], message, uri: workspace.latest_app_status?.uri ?? "" };
};
