// Creates a task: after all checks, its row, the workspace with its first build, and the timer that delivers the prompt are written as one
// batch (rule TK-1).
import { PROMPT_TIMER, TASK } from "#actors/tasks/keeper.ts";
import { forbidden, invalid, invalidField } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { setTimer } from "#db/engine/timers.ts";
import { insertTask, type TaskRow } from "#db/tasks/tasks.ts";
import type { TemplateRow } from "#db/templates/templates.ts";
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { CreateTask, Task } from "#schema/tasks/task.ts";
import { toLine } from "#schema/text.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canCreateChat } from "../access.ts";
import { findDefaultAgent, requireCodingAgent } from "../ai/coding-agents.ts";
import { chooseModel } from "../chats/create.ts";
import { toChatId } from "../chats/idempotency.ts";
import { parseEffort, toContent } from "../chats/input.ts";
import { checkUsageLimit } from "../chats/usage-limits.ts";
import type { DomainContext } from "../context.ts";
import type { KnownUser } from "../users/find.ts";
import { createWorkspace } from "../workspaces/create.ts";
import { auditTask } from "./audit.ts";
import { presentTask } from "./present.ts";

// The name of a task appears in the audit log, in URLs and in the workspace's name, where others see it, so it contains nothing of the
// prompt. The title, visible only to users who can see the task, is the prompt's first line.
const SALT_CHARS = 8;
const MAX_TITLE_LENGTH = 64;

/** Returns a name that is valid for workspaces; `salt` is letters and digits that differ between tasks. */
const toName = (salt: string): string => `task-${salt.toLowerCase().slice(0, SALT_CHARS)}`;

/** Returns the first line of the prompt, truncated. */
const makeTitle = (prompt: string): string => {
  const line = toLine(prompt.trim().split("\n", 1)[0] ?? "");
  return line.length <= MAX_TITLE_LENGTH ? line : `${line.slice(0, MAX_TITLE_LENGTH - 1).trimEnd()}…`;
};

/** Returns the new task. Rejects with 400, 403, 404 and 409 like new workspaces and new chats. */
export const createTask = async (
  ctx: DomainContext,
  caller: UserCaller,
  owner: KnownUser,
  body: CreateTask,
): Promise<Task> => {
  const { store, clock } = ctx;
  // Its chat uses the owner's credentials, so only the owner may send to it (facts/chats 4.1).
  if (owner.id !== caller.user_id) throw forbidden("You can create tasks only for yourself.");
  const prompt = parsePrompt(body.input);
  const reasoning_effort = parseEffort(body.reasoning_effort) ?? "";
  await checkUsageLimit(ctx, owner.id);
  const id = uuid();
  const now = clock.now();
  const name = body.name || toName(id);
  const { template_id, template_version_id, template_version_preset_id, rich_parameter_values, repository } = body;
  const templateFields = { template_id, template_version_id, template_version_preset_id, rich_parameter_values };
  const workspace = { name, ...templateFields, ...(repository ? { repository } : {}) };
  let task: TaskRow | undefined;
  await createWorkspace(ctx, {
    caller,
    owner,
    body: workspace,
    task: {
      id,
      prepare: async (template) => {
        const { organization_id } = template;
        if (!canCreateChat(caller, organization_id)) throw forbidden("You are not a member of this organization.");
        const { coding_agent, model_config_id } = await chooseEngine(ctx, body, template);
        return (workspace_id) => {
          const row: TaskRow = {
            id,
            organization_id,
            owner_id: owner.id,
            name,
            display_name: body.display_name?.trim() || makeTitle(prompt),
            workspace_id,
            chat_id: toChatId(owner.id, toRequest(id).key),
            prompt,
            coding_agent,
            model_config_id,
            reasoning_effort,
            delivered_at: null,
            problem: "",
            snapshot: null,
            created_at: now,
            updated_at: now,
            deleted: false,
          };
          task = row;
          return [insertTask(row), setTimer(TASK, id, PROMPT_TIMER, now), ...auditTask({ after: row }, now)];
        };
      },
    },
  });
  if (!task) throw new Error("a task was made without its row");
  const access = await store.get(findWorkspaceAccessRow({ id: task.workspace_id }));
  if (access) ctx.tasks.wait({ task_id: id, workspace_id: access.id });
  return presentTask(ctx, task, caller);
};

/**
 * Returns the engine of the task's chat: the requested coding agent or model, or the template's default agent, or a model chosen as for the
 * owner's other chats. Rejects with 400 when it cannot be used: an agent is never replaced by something else.
 */
const chooseEngine = async (
  ctx: DomainContext,
  { coding_agent, model_config_id }: CreateTask,
  template: TemplateRow,
): Promise<Pick<TaskRow, "coding_agent" | "model_config_id">> => {
  if (coding_agent !== undefined) {
    if (model_config_id !== undefined) {
      throw invalidField("coding_agent", "cannot be given together with model_config_id");
    }
    await requireCodingAgent(ctx, coding_agent, "coding_agent");
    return { coding_agent, model_config_id: null };
  }
  if (model_config_id !== undefined) return { coding_agent: null, model_config_id: chooseModel(ctx, model_config_id) };
  const defaultAgent = await findDefaultAgent(ctx, template);
  if (defaultAgent && defaultAgent.problem !== "") {
    const detail = "Choose another agent or a model.";
    throw invalid(
      defaultAgent.problem,
      [{ field: "coding_agent", detail }],
      `It is the template's default agent. ${detail}`,
    );
  }
  if (!defaultAgent) chooseModel(ctx, undefined);
  return { coding_agent: defaultAgent?.name ?? null, model_config_id: null };
};

/** Returns the idempotency key of the task's chat, so that retries create it only once (rule TK-2). */
export const toRequest = (task_id: string): { readonly key: string; readonly digest: string } => ({
  key: `task ${task_id}`,
  digest: "",
});

/** Returns the text as chats store it. Rejects with 400 for a blank text. */
export const parsePrompt = (input: string): string => toContent([{ type: "text", text: input }])[0]?.text ?? "";
