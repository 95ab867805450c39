// Finds tasks by name, for all commands that work on one.
import type { Task } from "#schema/tasks/task.ts";
import { TASK_STATE_WORDS } from "#schema/tasks/task-state-words.ts";
import { ApiError, type Client } from "#src/client.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { formatFields } from "../../options.ts";
import { toUnknownNameError } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";

/** The API path of a task. */
export const toTaskPath = ({ owner_id, id }: Pick<Task, "owner_id" | "id">) =>
  `/api/v2/tasks/${owner_id}/${id}` as const;

/** Returns the caller's task for `NAME` or an ID, another user's for `OWNER/NAME`. Throws VerbFailure if it does not exist. */
export const getTask = async (client: Client, name: string): Promise<Task> => {
  const [owner, taskName] = name.includes("/") ? name.split("/", 2) : ["me", name];
  const path = `/api/v2/tasks/${encodeURIComponent(owner ?? "")}/${encodeURIComponent(taskName ?? "")}` as const;
  return client.get(path).catch(async (error) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    throw await toUnknownNameError("task", name, () => listOwnTasks(client), "slipway tasks list");
  });
};

/** Returns the named task, or prompts for one on a terminal. Throws UsageError before any request. */
export const selectTask = (input: VerbInput, words: readonly string[]): ((client: Client) => Promise<Task>) => {
  const word = takeOneWord(input, words, "the task, by its name or id");
  return async (client) => getTask(client, await promptIfMissing(input, word, "Task", () => listOwnTasks(client)));
};

const listOwnTasks = async (client: Client): Promise<string[]> => {
  const { tasks } = await client.get("/api/v2/tasks?q=owner%3Ame&limit=20");
  return tasks.map(({ name }) => name);
};

/** Describes the task's activity in a few words. */
export const formatState = ({ status, current_state }: Task): string => {
  if (current_state === null) return status;
  return status === "active" ? `active, ${TASK_STATE_WORDS[current_state.state]}` : status;
};

/** Formats a task with one row per field. */
export const describeTask = (task: Task): string =>
  formatFields([
    ["Task", `${task.name} (${task.id})`],
    ["Title", task.display_name],
    ["Status", formatState(task)],
    ["Last message", task.current_state?.message || "-"],
    ["Workspace", `${task.owner_name}/${task.workspace_name} (${task.workspace_status ?? "unknown"})`],
    ["Chat", toId(task.chat_id) ?? "starts when the workspace is running"],
    ["Template", task.template_name],
    ["Agent", task.coding_agent],
  ]);

const toId = (id: Task["chat_id"]): string | undefined => {
  if (id === null || typeof id === "string") return id ?? undefined;
  return id.valid ? id.uuid : undefined;
};
