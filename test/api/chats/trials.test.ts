// Trials: one prompt runs in several forks of a real local workspace, and the user keeps one of them.
import { expect } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import type { WatchEvent } from "#schema/chats/chat-event.ts";
import type { Trial, TrialDiff, Trials } from "#schema/chats/trial.ts";
import type { Snapshots } from "#schema/workspaces/snapshot.ts";
import type { Workspaces } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { configureAgent, listPendingCalls } from "#test/support/acp/agent-world.ts";
import { createChat, sendMessage } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { type ScriptedCall, ScriptedModels } from "#test/support/models/scripted-models.ts";
import { seedUser } from "#test/support/seed.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace, ECHO, openWorld } from "#test/support/workspaces.ts";

const LOCAL = "provisioner: local\nresources: [{name: main, agents: [{name: main}]}]\n";

/** Starts a server with a running workspace, whose home contains the file `answer`, and an idle chat in it. */
const openTrialWorld = async (chatFields: Record<string, unknown> = {}) => {
  const models = new ScriptedModels();
  const world = await openWorld({ models });
  const { admin, server } = world;
  const { id, organization_id } = await createWorkspace(admin, (await makeTemplate(admin, LOCAL)).id, "dev");
  await awaitBuild(admin, id);
  const getHome = (workspace: string): string => join(server.directory, "workspaces", workspace, "home");
  const readAnswer = (workspace: string): string => readFileSync(join(getHome(workspace), "answer"), "utf8");
  writeFileSync(join(getHome(id), "answer"), "none\n");
  const speaker = { owner: admin, organization_id };
  const chat = await createChat(speaker, "hello", { workspace_id: id, ...chatFields });
  (await models.next()).say("good day").finish();
  await until(async () => (await admin.get<Chat>(`/api/v2/chats/${chat.id}`)).status === "waiting");
  const path = `/api/v2/chats/${chat.id}/trials`;
  const getTrial = (trial: Trial): Promise<Trial> => admin.get<Trial>(`${path}/${trial.id}`);
  return {
    models,
    admin,
    server,
    id,
    speaker,
    chat,
    path,
    getHome,
    readAnswer,
    /** Waits until the trial has this status, and returns it. */
    waitForStatus: (trial: Trial, status: Trial["status"]): Promise<Trial> =>
      until(async () => {
        const current = await getTrial(trial);
        return current.status === status && current;
      }),
    listWayStatuses: async (trial: Trial): Promise<string[]> =>
      (await getTrial(trial)).ways.map(({ status }) => status),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
};

/** Answers the prompt "write WORD" with a call that writes WORD to the file `answer`. */
const writeAnswer = (call: ScriptedCall): void => {
  const content = `${call.prompt.replace("write ", "")}\n`;
  call.callTool(`w-${call.prompt}`, "write_file", { path: "answer", content }).finish("tool_calls");
};

testInProcess(
  "[TY-1][TY-3][TY-4][TY-9] runs ways in separate forks, checks them, and copies the kept way's files to the workspace after a snapshot",
  async () => {
    await using world = await openTrialWorld();
    const { admin, models, path, id, chat, readAnswer } = world;
    using watcher = await admin.socket("/api/v2/chats/watch");
    const created = await admin.post<Trial>(path, {
      ways: [{ prompt: "write one" }, { prompt: "write two" }],
      check_command: "echo run >> runs; grep -q two answer && echo found || { echo missing; exit 3; }",
    });
    expect(created).toMatchObject({ status: "running", chat_id: chat.id, workspace_id: id, error: "" });
    expect(created.ways.map((way) => `${way.number} ${way.status} ${way.workspace_name}`)).toEqual([
      ...["1 waiting dev-way-1", "2 waiting dev-way-2"],
    ]);
    const calls = [await models.next(), await models.next()];
    expect(calls.map(({ prompt }) => prompt).sort()).toEqual(["write one", "write two"]);
    // Each way has the history of the original chat.
    for (const call of calls) expect(JSON.stringify(call.request)).toContain("good day");
    expect(await world.listWayStatuses(created)).toEqual(["working", "working"]);
    for (const call of calls) writeAnswer(call);
    for (const call of [await models.next(), await models.next()]) call.say("done").finish();
    const ready = await world.waitForStatus(created, "ready");
    expect(ready.ways.map(({ status, check, changes }) => ({ status, check, changes }))).toMatchObject([
      {
        status: "failed",
        check: { exit_code: 3, timed_out: false, output: "missing\n" },
        changes: { files: 1, added: 1, removed: 1 },
      },
      { status: "passed", check: { exit_code: 0, output: "found\n" }, changes: { files: 1, added: 1, removed: 1 } },
    ]);
    const [firstWay, secondWay] = ready.ways;
    expect(readAnswer(firstWay?.workspace_id ?? "")).toBe("one\n");
    expect(readAnswer(secondWay?.workspace_id ?? "")).toBe("two\n");
    expect(readAnswer(id)).toBe("none\n");
    const { folders } = await admin.get<TrialDiff>(`${path}/${created.id}/ways/2/diff`);
    expect(folders.map(({ unified_diff }) => unified_diff.split("\n").slice(-4))).toEqual([
      ["@@ -1 +1 @@", "-none", "+two", ""],
    ]);
    expect((await admin.get<Trials>(path)).trials).toEqual([ready]);
    const secondChat = await admin.get<Chat>(`/api/v2/chats/${secondWay?.chat_id}`);
    expect(secondChat).toMatchObject({ workspace_id: secondWay?.workspace_id, title: `${chat.title} (way 2)` });

    const keeping = await admin.post<Trial>(`${path}/${created.id}/keep`, { way: 2 });
    expect(keeping).toMatchObject({ status: "keeping", kept_way: 2 });
    const keptTrial = await world.waitForStatus(created, "kept");
    expect(keptTrial.ways.map(({ deleted, error }) => ({ deleted, error }))).toEqual([
      { deleted: true, error: "" },
      { deleted: true, error: "" },
    ]);
    expect(readAnswer(id)).toBe("two\n");
    // The check ran once, and the workspace has the file that it wrote.
    expect(readFileSync(join(world.getHome(id), "runs"), "utf8")).toBe("run\n");
    expect((await admin.get<Workspaces>("/api/v2/workspaces")).workspaces.map(({ name }) => name)).toEqual(["dev"]);
    expect((await admin.get<{ workspaces: unknown[] }>("/api/v2/workspaces/trash")).workspaces).toHaveLength(2);
    const { snapshots } = await admin.get<Snapshots>(`/api/v2/workspaces/${id}/snapshots`);
    expect(snapshots.map(({ name, reason, status }) => `${name}: ${reason} ${status}`)).toEqual([
      "Before keeping way 2: manual ready",
    ]);
    expect(await admin.get<Chat>(`/api/v2/chats/${secondWay?.chat_id}`)).toMatchObject({
      workspace_id: id,
      archived: false,
    });
    expect((await admin.get<Chat>(`/api/v2/chats/${firstWay?.chat_id}`)).archived).toBe(true);
    await until(async () => {
      const { latest_build } = (await admin.get<Workspaces>("/api/v2/workspaces")).workspaces[0] ?? {};
      const agents = latest_build?.resources.flatMap((resource) => resource.agents) ?? [];
      return latest_build?.status === "running" && agents[0]?.lifecycle_state === "ready";
    });
    // The kept way's chat continues in the original workspace.
    await sendMessage(world.speaker, secondWay?.chat_id ?? "", "write three");
    writeAnswer(await models.next());
    (await models.next()).say("done").finish();
    await until(() => readAnswer(id) === "three\n");
    const { kind, chat: changedChat } = await watcher.json<WatchEvent>();
    expect([kind, changedChat.id]).toEqual(["trial_change", chat.id]);
  },
);

testInProcess(
  "[TY-2][TY-3][TY-5][TY-6] ways request approval and are checked after each turn; they can be stopped and discarded; invalid requests fail",
  async () => {
    await using world = await openTrialWorld({ permission_mode: "ask" });
    const { admin, models, server, path, id, chat, speaker, readAnswer } = world;
    const getRejection = async (body: object, requestPath = path, client = admin): Promise<string> => {
      const response = await client.fetch("POST", requestPath, body);
      const { message, validations = [] } = (await response.json()) as {
        message: string;
        validations?: { field: string; detail: string }[];
      };
      return [response.status, ...validations.map(({ field, detail }) => `${field} ${detail}`), message].join(": ");
    };
    const body = { prompt: "write it", count: 2 };
    expect(await getRejection({ count: 2 })).toBe("400: prompt must not be empty: Validation failed.");
    expect(await getRejection({ prompt: "a", ways: [{}, { prompt: " " }] })).toStartWith(
      "400: ways.1.prompt must not be empty",
    );
    expect(await getRejection({ prompt: "a", ways: [{}, {}], count: 3 })).toStartWith(
      "400: count must be the number of ways",
    );
    expect(await getRejection({ prompt: "a", count: 9 })).toStartWith("400: count");
    expect(await getRejection({ prompt: "a", ways: [{}, { coding_agent: "none" }] })).toStartWith("400: coding_agent");
    expect(await getRejection({ ...body, check_timeout_seconds: 0 })).toStartWith("400: check_timeout_seconds");
    const withoutWorkspace = await createChat(speaker, "nowhere");
    const call = await models.next();
    expect(await getRejection(body, `/api/v2/chats/${withoutWorkspace.id}/trials`)).toBe(
      "409: This chat has no workspace to fork. Ask it to create one first, or choose one for it.",
    );
    call.finish();
    const echoWorkspace = await createWorkspace(admin, (await makeTemplate(admin, JSON.stringify(ECHO))).id, "echo");
    await awaitBuild(admin, echoWorkspace.id);
    const inEchoWorkspace = await createChat(speaker, "away", { workspace_id: echoWorkspace.id });
    const echoCall = await models.next();
    expect(await getRejection(body, `/api/v2/chats/${inEchoWorkspace.id}/trials`)).toStartWith(
      "409: Ways cannot be tried in this workspace. Snapshots are not available for this template",
    );
    echoCall.finish();
    const { token } = await seedUser(server, { organization_id: speaker.organization_id });
    const outsider = new Client(server.url, token);
    expect(await getRejection(body, path, outsider)).toStartWith("404");
    expect((await admin.get<Trials>(path)).trials).toEqual([]);
    expect((await admin.get<Snapshots>(`/api/v2/workspaces/${id}/snapshots`)).snapshots).toEqual([]);

    const trial = await admin.post<Trial>(path, { ...body, check_command: "cat answer", count: 2 });
    const trialPath = `${path}/${trial.id}`;
    expect(await getRejection(body)).toStartWith("409: This chat already has open ways");
    expect((await admin.fetch("GET", `/api/v2/chats/${withoutWorkspace.id}/trials/${trial.id}`)).status).toBe(404);
    expect(await getRejection({ way: 1 }, `${trialPath}/keep`)).toStartWith("409: Way 1 is still running");
    for (const wayCall of [await models.next(), await models.next()]) writeAnswer(wayCall);
    await until(async () => (await world.listWayStatuses(trial)).join() === "needs_you,needs_you");
    const chatIds = trial.ways.map(({ chat_id }) => chat_id);
    const answers = [{ tool_call_id: "w-write it", decision: "allow" }];
    await admin.post<unknown>(`/api/v2/chats/${chatIds[0]}/permissions`, { answers });
    (await models.next()).say("done").finish();
    await until(async () => (await world.listWayStatuses(trial)).join() === "passed,needs_you");
    // The owner continues in the chat of the first way, which is then checked again.
    await sendMessage(speaker, chatIds[0] ?? "", "again");
    const continuedCall = await models.next();
    await until(async () => (await world.listWayStatuses(trial))[0] === "working");
    continuedCall.say("as it was").finish();
    await until(async () => (await world.listWayStatuses(trial))[0] === "passed");
    await admin.post<Trial>(`${trialPath}/stop`);
    const stopped = await world.waitForStatus(trial, "ready");
    expect(stopped.ways.map(({ status }) => status)).toEqual(["passed", "stopped"]);
    expect(await getRejection({}, `${trialPath}/stop`)).toBe("409: None of the ways is running.");
    expect(await getRejection({ way: 3 }, `${trialPath}/keep`)).toStartWith("400: way must be 1 to 2");
    // Interrupting a pending approval causes one more model call.
    await until(async () => (await admin.get<Chat>(`/api/v2/chats/${chatIds[1]}`)).status === "waiting");

    await admin.post<Trial>(`${trialPath}/discard`);
    const discarded = await world.waitForStatus(trial, "discarded");
    expect(discarded.ways.every(({ deleted }) => deleted)).toBe(true);
    expect(readAnswer(id)).toBe("none\n");
    for (const chatId of chatIds) expect((await admin.get<Chat>(`/api/v2/chats/${chatId}`)).archived).toBe(true);
    expect((await admin.get<Workspaces>("/api/v2/workspaces")).workspaces.map(({ name }) => name).sort()).toEqual([
      "dev",
      "echo",
    ]);
    const { messages } = await admin.get<MessagePage>(`/api/v2/chats/${chatIds[1]}/messages`);
    expect(messages.filter(({ role }) => role === "user")).toHaveLength(2);
    expect(readdirSync(join(server.directory, "workspaces", id, "snapshots"))).toEqual([]);
    const { audit_logs } = await admin.get<{ audit_logs: { additional_fields: { operation?: string } }[] }>(
      `/api/v2/audit?limit=100&q=${encodeURIComponent("resource_type:chat")}`,
    );
    expect(audit_logs.flatMap(({ additional_fields: { operation } }) => operation ?? [])).toEqual([
      ...["discard_ways", "stop_ways", "try_ways"],
    ]);

    // Deleting a chat also deletes its open ways.
    const lastTrial = await admin.post<Trial>(path, body);
    // Answers all calls, including the one after the interrupted approval.
    const answerAll = async (): Promise<void> => {
      for (;;) (await models.next()).say("nothing to do").finish();
    };
    void answerAll();
    await world.waitForStatus(lastTrial, "ready");
    await admin.patch(`/api/v2/chats/${chat.id}`, { archived: true });
    expect((await admin.fetch("DELETE", `/api/v2/chats/${chat.id}`)).status).toBe(204);
    await until(async () => {
      const trash = await admin.get<{ workspaces: { id: string }[] }>("/api/v2/workspaces/trash");
      const trashed = new Set(trash.workspaces.map((workspace) => workspace.id));
      return lastTrial.ways.every(({ workspace_id }) => trashed.has(workspace_id));
    });
  },
);

testInProcess(
  "[TY-1][TY-3][TY-4] coding agents work on ways and request approval; the kept chat continues with its agent in the original workspace",
  async () => {
    await using world = await openTrialWorld({ permission_mode: "ask" });
    const { admin, path, id, readAnswer } = world;
    await configureAgent(world, "test");
    const created = await admin.post<Trial>(path, {
      ways: [
        { prompt: "say nothing to do", coding_agent: "test" },
        { prompt: "edit answer two\nsay done", coding_agent: "test" },
      ],
      check_command: "grep -q two answer",
    });
    await until(async () => (await world.listWayStatuses(created)).join() === "failed,needs_you");
    const chat_id = created.ways[1]?.chat_id ?? "";
    const [pendingCall] = await listPendingCalls(admin, chat_id);
    const answers = [{ tool_call_id: pendingCall?.tool_call_id, decision: "allow" }];
    await admin.post<unknown>(`/api/v2/chats/${chat_id}/permissions`, { answers });
    const ready = await world.waitForStatus(created, "ready");
    expect(ready.ways.map(({ status, changes, coding_agent }) => [status, changes?.files, coding_agent])).toEqual([
      ["failed", 0, "test"],
      ["passed", 1, "test"],
    ]);
    await admin.post<Trial>(`${path}/${created.id}/keep`, { way: 2 });
    await world.waitForStatus(created, "kept");
    expect(readAnswer(id)).toBe("two\n");
    const chat = await admin.get<Chat>(`/api/v2/chats/${chat_id}`);
    expect([chat.workspace_id, chat.coding_agent, chat.archived]).toEqual([id, "test", false]);
    await sendMessage(world.speaker, chat_id, "free cat answer\nsay bye");
    await until(async () => {
      const { messages } = await admin.get<MessagePage>(`/api/v2/chats/${chat_id}/messages`);
      return messages.some(({ content }) => content.some(({ text }) => text === "bye"));
    });
  },
);
