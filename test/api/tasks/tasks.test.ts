// Tasks: a workspace created for one prompt, and the chat that works on it, with a model controlled by the test.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Static } from "@sinclair/typebox";
import { sha256, uuid } from "#base/ids.ts";
import type { AuditLogs } from "#schema/audit.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { Task, TaskLogs, Tasks } from "#schema/tasks/task.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import type { ModelInfo } from "#src/llm/model.ts";
import { Lifecycle_State } from "#src/wire/gen/agent_pb.ts";
import { connectAgent } from "#test/api/agents/rpc-agent.ts";
import { fetchStatus } from "#test/api/users/people.ts";
import { Consumer } from "#test/hooks/world.ts";
import { TEST_AGENT } from "#test/support/acp/agent-world.ts";
import { loadHistory } from "#test/support/chats.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, ECHO, openWorld, seedTemplate, type World } from "#test/support/workspaces.ts";

/** Models that a test can make unavailable. */
class RemovableModels extends ScriptedModels {
  areRemoved = false;

  override resolve(id: string | null): ModelInfo | undefined {
    return this.areRemoved ? undefined : super.resolve(id);
  }
}

const models = new RemovableModels();
let world: World;
let ada: Client;
let bob: Client;
let template_id: string;
let version_id: string;
const connectedAgents: AsyncDisposable[] = [];

beforeAll(async () => {
  world = await openWorld({ models });
  const seeded = await seedTemplate(world.server, ECHO);
  ({ template_id, version_id } = seeded);
  const { organization_id } = seeded;
  ada = world.admin.withToken((await seedUser(world.server, { username: "ada", organization_id })).token);
  bob = world.admin.withToken((await seedUser(world.server, { username: "bob", organization_id })).token);
});
afterAll(async () => {
  for (const agent of connectedAgents) await agent[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const createTask = (input: string, fields: object = {}): Promise<Task> =>
  ada.post<Task>("/api/v2/tasks/me", { input, template_id, ...fields });
const toPath = ({ id }: Pick<Task, "id">, suffix = ""): string => `/api/v2/tasks/ada/${id}${suffix}`;
/** Returns the path without the prefix that `fetchStatus` adds. */
const toStatusPath = (task: Pick<Task, "id">, suffix = ""): string => toPath(task, suffix).slice("/api/v2".length);
const getTask = (task: Pick<Task, "id">): Promise<Task> => ada.get<Task>(toPath(task));
const toId = (field: Task["chat_id"]): string => (typeof field === "object" && field ? field.uuid : (field ?? ""));
const getWorkspaceId = (task: Task): string => toId(task.workspace_id);
const waitForError = (created: Task): Promise<Task> =>
  until(async () => {
    const task = await getTask(created);
    return task.status === "error" && task;
  });

/** Connects the agent of a task's workspace, reports its start scripts as run, and returns its token. */
const startAgent = async (task: Task, { server } = world, owner = ada): Promise<string> => {
  await awaitBuild(owner, getWorkspaceId(task));
  const token = uuid();
  const rows = [[sha256(token), getWorkspaceId(task)]];
  const newest = "(select latest_build_id from workspaces where id = ?2)";
  const sql = `update agents set token_hash = ?1 where workspace_id = ?2 and build_id = ${newest}`;
  await getContext(server).store.commit([{ sql, rows }]);
  const agent = await connectAgent(server, token);
  connectedAgents.push(agent);
  for (const state of [Lifecycle_State.STARTING, Lifecycle_State.READY]) {
    await agent.agent.updateLifecycle({ lifecycle: { state } });
  }
  return token;
};

/** Creates a task and finishes its first turn. */
const runTask = async (input: string): Promise<{ task: Task; chatId: string }> => {
  const created = await createTask(input);
  await startAgent(created);
  const call = await models.next();
  expect(call.prompt).toBe(input);
  call.say("It is done.").finish();
  const task = await until(async () => {
    const current = await getTask(created);
    return current.current_state?.state === "complete" && current;
  });
  return { task, chatId: toId(task.chat_id) };
};

test("[TK-1] [TK-4] creates a task and its workspace, whose names reveal nothing of the prompt, and waits for the workspace", async () => {
  const task = await createTask("Fix the *login* page, please!\nIt is slow.");
  expect(task).toMatchObject({
    display_name: "Fix the *login* page, please!",
    initial_prompt: "Fix the *login* page, please!\nIt is slow.",
    template_id,
    owner_name: "ada",
    chat_id: { valid: false },
    current_state: null,
  });
  expect(task.name).toBe(`task-${task.id.slice(0, 8)}`);
  const workspace = await ada.get<Workspace>(`/api/v2/workspaces/${getWorkspaceId(task)}`);
  expect(workspace).toMatchObject({ name: task.name, task_id: { uuid: task.id, valid: true } });
  await awaitBuild(ada, workspace.id);
  expect((await getTask(task)).status).toBe("initializing");
  expect(await fetchStatus(ada, "POST", toStatusPath(task, "/send"), { input: "go" })).toBe(409);
  expect(await ada.get<Task>(`/api/v2/tasks/me/${task.name.toUpperCase()}`)).toMatchObject({ id: task.id });
});

test("[TK-1] a refused request leaves no workspace and no task", async () => {
  const tasksBefore = await ada.get<Tasks>("/api/v2/tasks");
  const workspacesBefore = await ada.get<{ count: number }>("/api/v2/workspaces");
  const post = (body: object) => fetchStatus(ada, "POST", "/tasks/me", body);
  expect(await post({ input: "  ", template_id })).toBe(400);
  expect(await post({ input: "x" })).toBe(400);
  expect(await post({ input: "x", template_id: uuid() })).toBe(400);
  expect(await post({ input: "x", template_id, name: "not a name" })).toBe(400);
  expect(await post({ input: "x", template_id, model_config_id: uuid() })).toBe(400);
  expect(await post({ input: "x", template_id, reasoning_effort: "much" })).toBe(400);
  await createTask("first", { name: "taken", template_id: undefined, template_version_id: version_id });
  expect(await post({ input: "x", template_id, name: "Taken" })).toBe(409);
  expect((await ada.get<Tasks>("/api/v2/tasks")).count).toBe(tasksBefore.count + 1);
  expect((await ada.get<{ count: number }>("/api/v2/workspaces")).count).toBe(workspacesBefore.count + 1);
});

test("[TK-2] [TK-4] [TK-5] the chat starts with the prompt once the workspace is ready, and continues with later input", async () => {
  const { task, chatId } = await runTask("Write a haiku.");
  expect(task).toMatchObject({ status: "active", workspace_agent_lifecycle: "ready" });
  expect(await ada.get<Chat>(`/api/v2/chats/${chatId}`)).toMatchObject({ workspace_id: getWorkspaceId(task) });
  await ada.post(toPath(task, "/send"), { input: "Another one." });
  const call = await models.next();
  expect(call.prompt).toBe("Another one.");
  expect((await getTask(task)).current_state?.state).toBe("working");
  // This input is queued until the turn ends.
  await ada.post(toPath(task, "/send"), { input: "And a third." });
  call.say("Here it is.").finish();
  (await models.next()).say("The third.").finish();
  await until(async () => (await loadHistory(ada, chatId)).length === 6);
  const logs = await ada.get<TaskLogs>(toPath(task, "/logs"));
  expect(logs.logs.map(({ type, content }) => `${type}: ${content}`)).toEqual([
    ...["input: Write a haiku.", "output: It is done.", "input: Another one.", "output: Here it is."],
    ...["input: And a third.", "output: The third."],
  ]);
  expect(logs.count).toBe(6);
  const newerLogs = await ada.get<TaskLogs>(toPath(task, `/logs?after_id=${logs.logs[3]?.id}`));
  expect(newerLogs.logs.map(({ content }) => content)).toEqual(["And a third.", "The third."]);
  expect((await ada.get<TaskLogs>(toPath(task, "/logs?limit=1"))).logs.map(({ content }) => content)).toEqual([
    "The third.",
  ]);
  // Another run of the scheduler does not send the prompt again.
  await getContext(world.server).scheduler.tick();
  expect((await loadHistory(ada, chatId)).filter((line) => line.startsWith("user"))).toHaveLength(3);
});

test("[TK-3] the owner can replace the prompt until it is sent, and the audit log omits the prompt", async () => {
  const task = await createTask("Do the wrong thing.");
  expect((await ada.fetch("PATCH", toPath(task, "/input"), { input: "Do the right thing." })).status).toBe(204);
  await startAgent(task);
  const call = await models.next();
  expect(call.prompt).toBe("Do the right thing.");
  call.finish();
  expect((await ada.fetch("PATCH", toPath(task, "/input"), { input: "Too late." })).status).toBe(409);
  expect((await getTask(task)).initial_prompt).toBe("Do the right thing.");
  const { audit_logs } = await world.admin.get<Static<typeof AuditLogs>>(
    "/api/v2/audit?q=resource_type:task&limit=100",
  );
  const taskEntries = audit_logs.filter(({ resource_id, status_code }) => resource_id === task.id && status_code < 400);
  expect(taskEntries.map(({ action }) => action)).toEqual(["write", "create"]);
  expect(JSON.stringify(taskEntries)).not.toContain("thing.");
  expect(taskEntries[0]?.diff.prompt).toEqual({ old: "", new: "", secret: true });
});

test("[TK-3] shows why a prompt cannot be sent, and sends it again when the task resumes", async () => {
  const task = await createTask("Fix the build.");
  models.areRemoved = true;
  await startAgent(task);
  const failed = await waitForError(task);
  expect(failed.current_state).toMatchObject({
    state: "failed",
    message: expect.stringContaining("No model is available"),
  });
  expect((await ada.fetch("POST", toPath(task, "/send"), { input: "And?" })).status).toBe(409);
  models.areRemoved = false;
  await ada.post<unknown>(toPath(task, "/pause"), undefined);
  await awaitBuild(ada, getWorkspaceId(task));
  await ada.post<unknown>(toPath(task, "/resume"), undefined);
  await startAgent(task);
  const call = await models.next();
  expect(call.prompt).toBe("Fix the build.");
  call.finish();
  await until(async () => (await getTask(task)).status === "active");
});

test("[TK-6] pausing stops the workspace and the turn; resuming starts it, and the chat continues", async () => {
  const { task, chatId } = await runTask("Count to a million.");
  await ada.post(toPath(task, "/send"), { input: "Go on." });
  (await models.next()).say("one, two");
  const { workspace_build } = await ada.post<{ workspace_build: Build }>(toPath(task, "/pause"), undefined);
  expect(workspace_build).toMatchObject({ transition: "stop", reason: "task_manual_pause" });
  await until(async () => (await ada.get<Chat>(`/api/v2/chats/${chatId}`)).status === "waiting");
  await awaitBuild(ada, getWorkspaceId(task));
  expect((await getTask(task)).status).toBe("paused");
  expect((await ada.fetch("POST", toPath(task, "/send"), { input: "Are you there?" })).status).toBe(409);
  const resumed = await ada.post<{ workspace_build: Build }>(toPath(task, "/resume"), undefined);
  expect(resumed.workspace_build).toMatchObject({ transition: "start", reason: "task_resume" });
  await startAgent(task);
  await until(async () => (await getTask(task)).status === "active");
  await ada.post(toPath(task, "/send"), { input: "Are you there?" });
  const call = await models.next();
  expect(call.prompt).toBe("Are you there?");
  call.finish();
});

test("[TK-5] without a chat, the log shows the messages that an agent in the workspace has reported", async () => {
  const task = await createTask("Wait for the scripts.");
  await awaitBuild(ada, getWorkspaceId(task));
  const token = uuid();
  const setToken = "update agents set token_hash = ?1 where workspace_id = ?2";
  await getContext(world.server).store.commit([{ sql: setToken, rows: [[sha256(token), getWorkspaceId(task)]] }]);
  const agent = new Client(world.server.url, token);
  const messages = [{ id: 7, role: "user", content: "hi", time: "2026-01-02T03:04:05Z" }, { content: "hello" }, 5];
  const saveLog = (id: string) =>
    agent.fetch("POST", `/api/v2/workspaceagents/me/tasks/${id}/log-snapshot?format=agentapi`, { messages });
  expect((await saveLog(task.id)).status).toBe(204);
  expect(await ada.get<TaskLogs>(toPath(task, "/logs"))).toMatchObject({
    count: 2,
    snapshot: true,
    logs: [
      { id: 7, type: "input", content: "hi", time: "2026-01-02T03:04:05.000Z" },
      { id: 1, type: "output", content: "hello" },
    ],
  });
  const otherTask = await createTask("Another's.");
  expect((await saveLog(otherTask.id)).status).toBe(404);
});

test("[TK-7] deleting a task deletes its workspace and archives its chat; deleting the workspace deletes the task", async () => {
  const { task, chatId } = await runTask("Come and go.");
  await ada.post(toPath(task, "/send"), { input: "Still talking." });
  (await models.next()).say("I am");
  expect((await ada.fetch("DELETE", toPath(task))).status).toBe(202);
  expect((await ada.fetch("GET", toPath(task))).status).toBe(404);
  const deletedWorkspace = await awaitBuild(ada, getWorkspaceId(task));
  expect(deletedWorkspace.latest_build.status).toBe("deleted");
  const { scheduler } = getContext(world.server);
  await until(async () => {
    await scheduler.tick();
    return (await ada.get<Chat>(`/api/v2/chats/${chatId}`)).archived;
  });
  const secondTask = await createTask("By the workspace.", { name: "by-the-workspace" });
  await awaitBuild(ada, getWorkspaceId(secondTask));
  await ada.post(`/api/v2/workspaces/${getWorkspaceId(secondTask)}/builds`, { transition: "delete" });
  await awaitBuild(ada, getWorkspaceId(secondTask));
  expect((await ada.fetch("GET", toPath(secondTask))).status).toBe(404);
  expect((await createTask("Once more.", { name: "by-the-workspace" })).name).toBe("by-the-workspace");
});

test("[TK-9] a task uses the requested agent or model, or else the template's agent, without a fallback for disabled ones", async () => {
  const configureAgent = (name: string, enabled: boolean) =>
    world.admin.put<unknown>(
      `/api/v2/ai/agents/${name}`,
      Object.assign({}, TEST_AGENT, { enabled, display_name: name }),
    );
  await configureAgent("first", true);
  await configureAgent("second", true);
  const templatePath = `/api/v2/templates/${template_id}`;
  const chosen = await createTask("By the first.", { coding_agent: "first" });
  expect(chosen.coding_agent).toBe("first");
  const post = (fields: object) =>
    ada.fetch("POST", "/api/v2/tasks/me", Object.assign({ input: "x", template_id }, fields));
  const countBefore = (await ada.get<Tasks>("/api/v2/tasks")).count;
  const { id: model_config_id } = models.resolve(null) as ModelInfo;
  for (const fields of [
    { coding_agent: "third" },
    { coding_agent: "codex" },
    { coding_agent: "" },
    { coding_agent: "first", model_config_id },
  ]) {
    expect([fields, (await post(fields)).status]).toEqual([fields, 400]);
  }
  expect(await createTask("By a model.")).not.toHaveProperty("coding_agent");

  await world.admin.patch<unknown>(templatePath, { default_coding_agent: "second" });
  const defaultTask = await createTask("By the second.");
  expect(defaultTask.coding_agent).toBe("second");
  expect((await createTask("By the first again.", { coding_agent: "first" })).coding_agent).toBe("first");
  expect(await createTask("By a model again.", { model_config_id })).not.toHaveProperty("coding_agent");
  await configureAgent("second", false);
  const refused = await post({});
  expect([refused.status, await refused.json()]).toEqual([
    400,
    expect.objectContaining({
      message: 'The coding agent "second" is disabled.',
      validations: [{ field: "coding_agent", detail: "Choose another agent or a model." }],
    }),
  ]);
  expect((await ada.get<Tasks>("/api/v2/tasks")).count).toBe(countBefore + 4);

  // The agent was disabled after the task was created: the prompt waits, and no model is called.
  await startAgent(defaultTask);
  const failed = await waitForError(defaultTask);
  expect(failed.current_state?.message).toContain('The coding agent "second" is disabled.');
  await world.admin.patch<unknown>(templatePath, { default_coding_agent: "" });
  await configureAgent("second", true);
  await ada.post<unknown>(toPath(defaultTask, "/pause"), undefined);
  await awaitBuild(ada, getWorkspaceId(defaultTask));
  await ada.post<unknown>(toPath(defaultTask, "/resume"), undefined);
  await startAgent(defaultTask);
  const chat = await until(async () => {
    const { chat_id } = await getTask(defaultTask);
    return typeof chat_id === "object" && chat_id?.valid === true && ada.get<Chat>(`/api/v2/chats/${chat_id.uuid}`);
  });
  expect(chat.coding_agent).toBe("second");
});

test("[TK-8] lists users' own tasks, newest first, by status and words; the deployment's owner sees all tasks", async () => {
  const task = await createTask("Look for this needle.");
  const adasTasks = await ada.get<Tasks>("/api/v2/tasks?limit=1");
  expect(adasTasks.tasks.map(({ id }) => id)).toEqual([task.id]);
  const matches = await ada.get<Tasks>("/api/v2/tasks?q=needle");
  expect([matches.count, matches.tasks[0]?.id]).toEqual([1, task.id]);
  const activeTasks = (await ada.get<Tasks>("/api/v2/tasks?q=status:active")).tasks;
  expect(activeTasks.every(({ status }) => status === "active")).toBe(true);
  expect(await bob.get<Tasks>("/api/v2/tasks?q=owner:ada")).toEqual({ tasks: [], count: 0 });
  expect((await world.admin.get<Tasks>("/api/v2/tasks?q=owner:ada organization:default")).count).toBe(adasTasks.count);
  expect((await world.admin.get<Tasks>("/api/v2/tasks?q=owner:me")).count).toBe(0);
  expect(await fetchStatus(ada, "GET", "/tasks?q=status:nothing")).toBe(400);
  const statusPath = toStatusPath(task);
  expect(await fetchStatus(bob, "GET", statusPath)).toBe(404);
  expect(await fetchStatus(bob, "POST", "/tasks/ada", { input: "x", template_id })).toBe(404);
  expect(await fetchStatus(world.admin, "POST", "/tasks/ada", { input: "x", template_id })).toBe(403);
  expect(await fetchStatus(world.admin, "GET", statusPath)).toBe(200);
  expect(await fetchStatus(world.admin, "POST", `${statusPath}/send`, { input: "x" })).toBe(403);
  await awaitBuild(ada, getWorkspaceId(task));
  expect(await fetchStatus(world.admin, "POST", `${statusPath}/pause`)).toBe(202);
  await awaitBuild(ada, getWorkspaceId(task));
  expect(await fetchStatus(world.admin, "DELETE", statusPath)).toBe(202);
});

testNeeding(
  [needs.python3],
  "[TK-3] a lifecycle hook that refuses or fails on a prompt is not called again by later changes or another node",
  async () => {
    await using consumer = await Consumer.start();
    await using hookedWorld = await openWorld({ models, env: consumer.env() });
    const { template_id } = await seedTemplate(hookedWorld.server, ECHO);
    const { tasks, topics } = getContext(hookedWorld.server);
    const event = "user_prompt_submit";
    const denial = { permission: { decision: "deny", reason: "Not that." } };
    for (const rule of [
      { event, how: "status" as const, status: 500 },
      { event, answer: denial },
    ]) {
      await consumer.rule(rule);
      const task = await hookedWorld.admin.post<Task>("/api/v2/tasks/me", { input: "FORBIDDEN", template_id });
      await startAgent(task, hookedWorld, hookedWorld.admin);
      await until(async () => (await hookedWorld.admin.get<Task>(`/api/v2/tasks/me/${task.id}`)).status === "error");
      topics.publish("workspace_changed", getWorkspaceId(task), { agent_id: uuid() });
    }
    await tasks.recover();
    // Resolves when every check has ended.
    await tasks.stop();
    expect(await consumer.listReceived(event)).toHaveLength(2);
  },
);
