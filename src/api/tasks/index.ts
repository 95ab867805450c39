// Tasks: a workspace created for one prompt, and the chat that works on it there.
import { t } from "elysia";
import { changePrompt, deleteTask, pauseTask, resumeTask, sendToTask } from "#domain/tasks/change.ts";
import { createTask } from "#domain/tasks/create.ts";
import { loadTask, taskPath } from "#domain/tasks/find.ts";
import { loadTasks, searchTasks } from "#domain/tasks/list.ts";
import { loadTaskLogs } from "#domain/tasks/logs.ts";
import { presentTask } from "#domain/tasks/present.ts";
import { findUserInPath, userPath } from "#domain/users/find.ts";
import { CreateTask, Task, TaskBuild, TaskInput, TaskLogs, Tasks } from "#schema/tasks/task.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { answerList } from "../http/answers/large-list.ts";
import { callers } from "../http/caller.ts";
import { ANY_ID } from "../http/document/example-ids.ts";
import { operation } from "../http/operation.ts";
import { pageQuery, toPage } from "../http/paging.ts";
import { fails, Generic, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Tasks"];
const user = true;
const params = taskPath;
const MAX_LOGS = 1_000;
const MAX_PROMPT_BYTES = 512 * 1024;

export const tasks = (ctx: ApiContext) =>
  routes({ prefix: "/tasks" })
    .use(callers)
    .get(
      "",
      async ({ caller, query, request }) => {
        const { limit, offset } = toPage(query);
        const matchingIds = await searchTasks(ctx, caller, query.q ?? "");
        const ids = matchingIds.slice(offset, offset + limit);
        const present = async (pageIds: readonly string[]): Promise<Map<string, string>> =>
          new Map((await loadTasks(ctx, caller, pageIds)).map((task) => [task.id, JSON.stringify(task)]));
        const list = { head: '{"tasks":[', ids, tail: `],"count":${matchingIds.length}}`, present };
        return answerList(ctx, request, caller.user_id, list);
      },
      {
        user,
        query: t.Object({
          q: t.Optional(
            t.String({
              description: "A search query of words and `key:value` terms. Keys: owner, organization, status.",
            }),
          ),
          limit: pageQuery.limit,
          offset: pageQuery.offset,
        }),
        response: { 200: Tasks, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "listTasks",
          summary: "List tasks",
          description:
            "Searches the newest 1,000 tasks and returns matches, newest first. Users see their own tasks; owners see all.",
          access: "users",
          scope: "task:read",
        }),
      },
    )
    .post(
      "/:user",
      async ({ caller, params, body, status }) => {
        const owner = await findUserInPath(ctx.store, params.user, caller);
        return status(201, await createTask(ctx, caller, owner, body));
      },
      {
        user,
        params: userPath,
        body: CreateTask,
        response: { 201: Task, ...fails(400, 401, 403, 404, 409, 413, 503) },
        detail: operation({
          tags,
          operationId: "createTask",
          summary: "Create a task",
          description:
            "Creates a workspace from `template_id`, `template_version_id` or `repository`. When the workspace is ready, a chat starts with the prompt, once.",
          limit: MAX_PROMPT_BYTES,
          example: { input: "Add a page that lists the open invoices.", template_id: ANY_ID },
          access: "owner_only",
          scope: ["task:create", "workspace:create", "template:use"],
          placement: "owner",
        }),
      },
    )
    .get(
      "/:user/:task",
      async ({ caller, params }) => presentTask(ctx, await loadTask(ctx.store, params, caller), caller),
      {
        user,
        params,
        response: { 200: Task, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "getTask",
          summary: "Get a task",
          access: "owner",
          scope: "task:read",
          placement: "task",
        }),
      },
    )
    .patch(
      "/:user/:task/input",
      async ({ caller, params, body, set }) => {
        await changePrompt(ctx, await loadTask(ctx.store, params, caller), caller, body.input);
        set.status = 204;
      },
      {
        user,
        params,
        body: TaskInput,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 413) },
        detail: operation({
          tags,
          operationId: "updateTaskInput",
          summary: "Update a task's prompt",
          description: "Replaces the prompt. Only possible before the task's chat starts.",
          limit: MAX_PROMPT_BYTES,
          audit: target.writes(target.task),
          example: { input: "Add a page that lists the open invoices." },
          access: "owner_only",
          scope: "task:update",
          placement: "task",
        }),
      },
    )
    .post(
      "/:user/:task/send",
      async ({ caller, params, body, set }) => {
        await sendToTask(ctx, await loadTask(ctx.store, params, caller), caller, body.input);
        set.status = 204;
      },
      {
        user,
        params,
        body: TaskInput,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 413, 502) },
        detail: operation({
          tags,
          operationId: "sendTaskInput",
          summary: "Send a message to a task",
          description:
            "The message is queued while a turn is running. Returns 409 while the task is paused or has no chat yet.",
          limit: MAX_PROMPT_BYTES,
          example: { input: "Sort them by date, too." },
          access: "owner_only",
          scope: "task:update",
          placement: "task",
        }),
      },
    )
    .get(
      "/:user/:task/logs",
      async ({ caller, params, query }) => {
        const task = await loadTask(ctx.store, params, caller);
        return loadTaskLogs(ctx, task, { after: query.after_id, limit: query.limit ?? MAX_LOGS });
      },
      {
        user,
        params,
        query: t.Object({
          after_id: t.Optional(t.Integer({ minimum: 0, description: "Return only entries with greater IDs." })),
          limit: t.Optional(
            t.Integer({
              minimum: 1,
              maximum: MAX_LOGS,
              description: "The number of newest entries to return; default 1,000.",
            }),
          ),
        }),
        response: { 200: TaskLogs, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "listTaskLogs",
          summary: "List messages of a task",
          access: "owner",
          scope: "task:read",
          placement: "task",
        }),
      },
    )
    .post(
      "/:user/:task/pause",
      async ({ caller, params, status }) => {
        const task = await loadTask(ctx.store, params, caller);
        return status(202, { workspace_build: await pauseTask(ctx, task, caller) });
      },
      {
        user,
        params,
        response: { 202: TaskBuild, ...fails(400, 401, 403, 404, 409, 503) },
        detail: operation({
          tags,
          operationId: "pauseTask",
          summary: "Pause a task",
          description: "Stops the task's workspace and interrupts the current turn.",
          audit: target.writes(target.task),
          access: "owner",
          scope: "task:update",
          placement: "task",
        }),
      },
    )
    .post(
      "/:user/:task/resume",
      async ({ caller, params, status }) => {
        const task = await loadTask(ctx.store, params, caller);
        return status(202, { workspace_build: await resumeTask(ctx, task, caller) });
      },
      {
        user,
        params,
        response: { 202: TaskBuild, ...fails(400, 401, 403, 404, 406, 409, 503) },
        detail: operation({
          tags,
          operationId: "resumeTask",
          summary: "Resume a task",
          description:
            "Starts the task's workspace again. The chat continues, and a prompt that could not be delivered is sent.",
          audit: target.writes(target.task),
          access: "owner",
          scope: "task:update",
          placement: "task",
        }),
      },
    )
    .delete(
      "/:user/:task",
      async ({ caller, params, status }) => {
        await deleteTask(ctx, await loadTask(ctx.store, params, caller), caller);
        return status(202, { message: "The task is being deleted with its workspace." });
      },
      {
        user,
        params,
        response: { 202: Generic, ...fails(400, 401, 403, 404, 406, 409, 503) },
        detail: operation({
          tags,
          operationId: "deleteTask",
          summary: "Delete a task",
          description:
            "Deletes the task's workspace and archives its chat. Returns 409 while a build of the workspace is active.",
          audit: target.deletes(target.task),
          access: "owner",
          scope: "task:delete",
          placement: "task",
        }),
      },
    );
