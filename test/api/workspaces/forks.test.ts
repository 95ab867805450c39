// Forks of real local workspaces: their files, their chats, and their isolation.
import { expect } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { GRANTED } from "#domain/users/keys.ts";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import type { Fork, Forks } from "#schema/workspaces/fork.ts";
import type { Snapshots } from "#schema/workspaces/snapshot.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { TEST_AGENT } from "#test/support/acp/agent-world.ts";
import { createChat, loadHistory, sendMessage } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";

const test = testSingleServer("local");

const TEMPLATE = `
provisioner: local
parameters: [{name: color, type: string, default: red}]
resources:
  - name: main
    agents:
      - name: main
        scripts: [{display_name: Work, run_on_start: true, script: "true"}]
`;

const HANGING_TEMPLATE = "provisioner: echo\necho: {hang: true}\nresources: [{name: a, agents: [{name: main}]}]\n";

const toWorkspacePath = (id: string): string => `/api/v2/workspaces/${id}`;
const fork = (client: Client, id: string, body: object = {}): Promise<Fork> =>
  client.post<Fork>(`${toWorkspacePath(id)}/forks`, body);
const awaitFork = (client: Client, { workspace_id, id }: Fork): Promise<Fork> =>
  until(async () => {
    const currentFork = await client.get<Fork>(`${toWorkspacePath(workspace_id)}/forks/${id}`);
    return ["ready", "failed"].includes(currentFork.status) && currentFork;
  });
const awaitNoSnapshots = (client: Client, id: string): Promise<boolean> =>
  until(async () => (await client.get<Snapshots>(`${toWorkspacePath(id)}/snapshots`)).snapshots.length === 0, {
    what: "the deletion of the fork's snapshot",
  });

test("[FO-1][FO-2][FO-5][ID-28] forks have the files, parameters and settings of the running workspace; changes in one do not affect another, and a key for the workspace does not list them", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const template = await makeTemplate(admin, TEMPLATE);
  const values = { rich_parameter_values: [{ name: "color", value: "blue" }] };
  const { id } = await createWorkspace(admin, template.id, "dev", values);
  await awaitBuild(admin, id);
  const toHome = (workspaceId: string): string => join(server.directory, "workspaces", workspaceId, "home");
  writeFileSync(join(toHome(id), "kept"), "of dev");
  await admin.put(`${toWorkspacePath(id)}/ttl`, { ttl_ms: 7_200_000 });

  const created = await fork(admin, id, { count: 3 });
  expect(created).toMatchObject({ status: "copying", workspace_id: id, error: "" });
  expect(created.copies.map(({ name, status }) => `${name} ${status}`)).toEqual([
    ...["dev-fork waiting", "dev-fork-2 waiting", "dev-fork-3 waiting"],
  ]);
  const doneFork = await awaitFork(admin, created);
  expect(doneFork).toMatchObject({ status: "ready", error: "" });
  expect(doneFork.copies.map(({ status }) => status)).toEqual(["ready", "ready", "ready"]);
  expect((await admin.get<Forks>(`${toWorkspacePath(id)}/forks`)).forks).toEqual([doneFork]);
  const [resource] = (await admin.get<Workspace>(toWorkspacePath(id))).latest_build.resources;
  const { key } = await admin.post<{ key: string }>(`/api/v2/workspaceagents/${resource?.agents?.[0]?.id}/keys`);
  const narrow = admin.withToken(key);
  expect((await narrow.get<Forks>(`${toWorkspacePath(id)}/forks`)).forks).toEqual([]);
  expect((await narrow.fetch("GET", `${toWorkspacePath(id)}/forks/${doneFork.id}`)).status).toBe(404);
  await awaitNoSnapshots(admin, id);
  expect(readdirSync(join(server.directory, "workspaces", id, "snapshots"))).toEqual([]);

  const [first, second] = doneFork.copies.map(({ workspace_id }) => workspace_id);
  const copy = await admin.get<Workspace>(toWorkspacePath(first ?? ""));
  expect(copy).toMatchObject({ name: "dev-fork", ttl_ms: 7_200_000, template_id: template.id });
  expect(copy.latest_build).toMatchObject({ status: "stopped", transition: "stop", build_number: 1 });
  expect(await admin.get(`/api/v2/workspacebuilds/${copy.latest_build.id}/parameters`)).toEqual([
    { name: "color", value: "blue" },
  ]);
  writeFileSync(join(toHome(first ?? ""), "kept"), "of the first");
  expect(readFileSync(join(toHome(second ?? ""), "kept"), "utf8")).toBe("of dev");
  expect(readFileSync(join(toHome(id), "kept"), "utf8")).toBe("of dev");
  await createBuild(admin, first ?? "", "start");
  await awaitBuild(admin, first ?? "");
  expect(readFileSync(join(toHome(first ?? ""), "kept"), "utf8")).toBe("of the first");
  const readToken = (workspaceId: string): string =>
    readFileSync(join(server.directory, "workspaces", workspaceId, "token"), "utf8");
  expect(readToken(first ?? "")).not.toBe(readToken(id));

  // Later forks get the next numbers, and can be started immediately.
  const named = await fork(admin, id, { names: ["other"], start: true });
  await awaitFork(admin, named);
  await awaitWorkspace(
    admin,
    named.copies[0]?.workspace_id ?? "",
    ({ latest_build }) => latest_build.status === "running",
  );
  expect((await fork(admin, id)).copies[0]?.name).toBe("dev-fork-4");
});

test("[FO-3] a fork is rejected without changes if its name is taken or the user cannot work in the workspace", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { id, organization_id } = await createWorkspace(admin, (await makeTemplate(admin, TEMPLATE)).id, "dev");
  const earlyResponse = await admin.fetch("POST", `${toWorkspacePath(id)}/forks`, {});
  expect(earlyResponse.status).toBe(409);
  await awaitBuild(admin, id);
  const getRejection = async (body: object, client = admin): Promise<string> => {
    const response = await client.fetch("POST", `${toWorkspacePath(id)}/forks`, body);
    const { validations = [] } = (await response.json()) as { validations?: { field: string; detail: string }[] };
    return [response.status, ...validations.map(({ field, detail }) => `${field}: ${detail}`)].join(" ");
  };
  expect(await getRejection({ names: ["dev"] })).toBe("409 names: dev is taken");
  expect(await getRejection({ names: ["a", "A"] })).toBe("400 names: A is given twice");
  expect(await getRejection({ names: ["no way"] })).toStartWith("400 names: no way must contain only letters");
  expect(await getRejection({ names: ["a", "b"], count: 3 })).toBe("400 count: must be the number of names");
  expect(await getRejection({ count: 101 })).toStartWith("400 count");
  const outsider = new Client(server.url, (await seedUser(server, { organization_id })).token);
  expect(await getRejection({}, outsider)).toBe("404");
  // Template administrators may change a workspace but not read its content.
  const templateAdmin = await seedUser(server, { organization_id, roles: ["template-admin"] });
  expect(await getRejection({}, new Client(server.url, templateAdmin.token))).toBe("403");
  expect((await admin.get<Forks>(`${toWorkspacePath(id)}/forks`)).forks).toEqual([]);
  expect((await admin.get<Snapshots>(`${toWorkspacePath(id)}/snapshots`)).snapshots).toEqual([]);
});

test("[FO-6] a fork whose copy failed gets its files with its next start; until then its original cannot be permanently deleted", async () => {
  await using world = await openWorld({ env: { SLIPWAY_PROVISIONER_SLOTS: "1" } });
  const { admin, server } = world;
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, TEMPLATE)).id, "dev");
  await awaitBuild(admin, id);
  const hanging = await makeTemplate(admin, HANGING_TEMPLATE);
  /** Creates a fork whose build fails, because a file exists in place of its folder. */
  const createFailingFork = async (): Promise<{ forkResponse: Fork; copyId: string }> => {
    const blocker = await createWorkspace(admin, hanging.id, `blocks-${crypto.randomUUID().slice(0, 8)}`);
    const created = await fork(admin, id, {});
    const copyId = created.copies[0]?.workspace_id ?? "";
    const getCopyStatus = async () =>
      (await admin.get<Fork>(`${toWorkspacePath(id)}/forks/${created.id}`)).copies[0]?.status;
    await until(async () => (await getCopyStatus()) === "creating");
    writeFileSync(toFolder(copyId), "");
    await admin.fetch("PATCH", `/api/v2/workspacebuilds/${blocker.latest_build.id}/cancel`);
    await until(async () => (await getCopyStatus()) === "failed");
    Bun.spawnSync(["rm", toFolder(copyId)]);
    return { forkResponse: created, copyId };
  };
  const toFolder = (workspaceId: string): string => join(server.directory, "workspaces", workspaceId);
  writeFileSync(join(toFolder(id), "home", "kept"), "of dev");
  const { forkResponse, copyId } = await createFailingFork();
  const [snapshot] = (await admin.get<Snapshots>(`${toWorkspacePath(id)}/snapshots`)).snapshots;
  expect(snapshot).toMatchObject({ reason: "fork", status: "ready" });
  expect((await admin.fetch("DELETE", `${toWorkspacePath(id)}/snapshots/${snapshot?.id}`)).status).toBe(409);
  const deleteResponse = await admin.fetch("POST", `${toWorkspacePath(id)}/builds`, {
    transition: "delete",
    permanent: true,
  });
  expect([deleteResponse.status, (await deleteResponse.json()) as object]).toMatchObject([
    409,
    { message: "The workspace is being forked. Try again when the forks have their files." },
  ]);
  await createBuild(admin, copyId, "start");
  expect((await awaitBuild(admin, copyId)).latest_build.status).toBe("running");
  expect(readFileSync(join(toFolder(copyId), "home", "kept"), "utf8")).toBe("of dev");
  expect((await awaitFork(admin, forkResponse)).copies[0]?.status).toBe("ready");
  await awaitNoSnapshots(admin, id);
  // The next start keeps later changes.
  writeFileSync(join(toFolder(copyId), "home", "kept"), "of the copy");
  await createBuild(admin, copyId, "stop");
  await awaitBuild(admin, copyId);
  await createBuild(admin, copyId, "start");
  await awaitBuild(admin, copyId);
  expect(readFileSync(join(toFolder(copyId), "home", "kept"), "utf8")).toBe("of the copy");

  // A deleted fork needs no files.
  const { forkResponse: deletedFork, copyId: deletedId } = await createFailingFork();
  await createBuild(admin, deletedId, "delete", { permanent: true });
  expect((await awaitFork(admin, deletedFork)).copies[0]?.status).toBe("deleted");
  await awaitNoSnapshots(admin, id);
  await createBuild(admin, id, "delete", { permanent: true });
  await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "deleted");
  expect(existsSync(toFolder(id))).toBe(false);
});

testInProcess(
  "[FO-4] a fork copies the user's chats in the workspace with their history, and the copies continue in the fork",
  async () => {
    const models = new ScriptedModels();
    // Coding agents need real time.
    await using world = await openWorld({ models, clock: systemClock });
    const { admin } = world;
    const { id, organization_id } = await createWorkspace(admin, (await makeTemplate(admin, TEMPLATE)).id, "dev");
    await awaitBuild(admin, id);
    const author = { owner: admin, organization_id };
    const chat = await createChat(author, "hello wombat", { workspace_id: id, labels: { team: "red" } });
    (await models.next()).say("good day").finish();
    const isIdle = async (chatId: string): Promise<boolean> =>
      (await admin.get<Chat>(`/api/v2/chats/${chatId}`)).status === "waiting";
    await until(() => isIdle(chat.id));
    await admin.put<unknown>("/api/v2/ai/agents/test", TEST_AGENT);
    const codingOptions = { workspace_id: id, coding_agent: "test", permissions: null };
    const agentChat = await createChat(author, "say hello kelp", codingOptions);
    await until(() => isIdle(agentChat.id));
    await createChat(author, "elsewhere");
    (await models.next()).say("not here").finish();

    const forkWithoutChats = await fork(admin, id, { chats: false });
    expect(forkWithoutChats.copies[0]?.chats).toEqual([]);
    await awaitFork(admin, forkWithoutChats);
    const doneFork = await awaitFork(admin, await fork(admin, id, { count: 2, start: true }));
    const listCopies = (from: string) =>
      doneFork.copies.map(({ chats, workspace_id }) => {
        expect(chats).toHaveLength(2);
        return { ...chats.find(({ from_chat_id }) => from_chat_id === from), workspace_id };
      });
    const copied = listCopies(chat.id);
    const [first, second] = copied;
    for (const copy of copied) {
      expect(await loadHistory(admin, copy.chat_id ?? "")).toEqual(await loadHistory(admin, chat.id));
      expect(await admin.get<Chat>(`/api/v2/chats/${copy.chat_id}`)).toMatchObject({
        workspace_id: copy.workspace_id,
        labels: { team: "red" },
        status: "waiting",
      });
    }
    await sendMessage(author, first?.chat_id ?? "", "go on");
    const call = await models.next();
    expect(JSON.stringify(call.request)).toContain("good day");
    call.say("here").finish();
    await until(() => isIdle(first?.chat_id ?? ""));
    expect(await loadHistory(admin, second?.chat_id ?? "")).toEqual(await loadHistory(admin, chat.id));
    // The agent of a forked chat works in the fork's workspace, and has the conversation.
    const [agentCopy] = listCopies(agentChat.id);
    await sendMessage(author, agentCopy?.chat_id ?? "", "say here\nfree pwd");
    await until(async () => (await loadHistory(admin, agentCopy?.chat_id ?? "")).at(-1)?.startsWith("tool:"));
    const { messages } = await admin.get<MessagePage>(`/api/v2/chats/${agentCopy?.chat_id}/messages`);
    expect(JSON.stringify(messages[0])).toContain(`workspaces/${agentCopy?.workspace_id}/home`);
  },
);

testInProcess("[OA-23] a fork that an application creates has neither a schedule nor automatic updates", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, TEMPLATE)).id, "dev");
  await awaitBuild(admin, id);
  await admin.put(`${toWorkspacePath(id)}/autostart`, { schedule: "CRON_TZ=UTC 0 9 * * *" });
  await admin.put(`${toWorkspacePath(id)}/autoupdates`, { automatic_updates: "always" });
  const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
  const markAsGranted = { sql: "update api_keys set login_type = ? where id = ?", rows: [[GRANTED, key.slice(0, 10)]] };
  await getContext(server).store.commit([markAsGranted]);
  const forkAndLoadSettings = async (client: Client): Promise<unknown> => {
    const { copies } = await awaitFork(admin, await fork(client, id));
    const copy = await awaitBuild(admin, copies[0]?.workspace_id ?? "");
    return [copy.autostart_schedule, copy.automatic_updates];
  };
  expect(await forkAndLoadSettings(admin)).toEqual(["CRON_TZ=UTC 0 9 * * *", "always"]);
  expect(await forkAndLoadSettings(admin.withToken(key))).toEqual([undefined, "never"]);
});
