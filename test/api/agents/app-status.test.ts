// Status reports of apps, over REST and over the agent's connection: how they are validated, stored and shown.
import { describe, expect, test } from "bun:test";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { AppStatus } from "#schema/workspaces/app.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError, Client } from "#src/client.ts";
import type { UpdateAppStatusRequest_AppStatusState } from "#src/wire/gen/agent_pb.ts";
import { getContext, type SeededAgent, seedAgent, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";
import { connectAgent } from "./rpc-agent.ts";

const PATH = "/api/v2/workspaceagents/me/app-status";
const createAgentClient = (server: TestServer, { agent_token }: SeededAgent) => new Client(server.url, agent_token);
const listStatuses = async (server: TestServer, { agent_id, owner_token }: SeededAgent): Promise<AppStatus[][]> => {
  const agent = await new Client(server.url, owner_token).get<WorkspaceAgent>(`/api/v2/workspaceagents/${agent_id}`);
  return agent.apps.map((app) => app.statuses);
};
const awaitRejection = async (call: Promise<unknown>) => {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ApiError)) throw new Error("the call was not rejected");
  return [error.status, error.body.validations?.[0]?.field];
};

describe("a status report over REST", () => {
  test("[AP-1] is stored, returned in the generic shape, and shown newest first under its app only", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server, { apps: [{ slug: "ai" }, { slug: "web" }] });
    const agent = createAgentClient(server, seeded);
    const response = await agent.patch(PATH, {
      app_slug: "ai",
      state: "working",
      message: "reading",
      // The server drops an invalid icon.
      icon: "javascript:alert(1)",
    });
    expect(response).toEqual({ message: "Status stored." });
    const uri = "https://example.com/pull/1?a=b#c";
    await agent.patch(PATH, {
      app_slug: "ai",
      state: "complete",
      message: "done",
      uri,
      icon: "/emojis/2705.png",
      needs_user_attention: true,
    });
    const [ai, web] = await listStatuses(server, seeded);
    expect(web).toEqual([]);
    expect(ai?.map(({ state, message }) => [state, message])).toEqual([
      ["complete", "done"],
      ["working", "reading"],
    ]);
    expect(ai?.[0]).toMatchObject({
      agent_id: seeded.agent_id,
      workspace_id: seeded.workspace_id,
      uri,
      icon: "/emojis/2705.png",
      needs_user_attention: true,
    });
    expect(ai?.[1]).toMatchObject({ icon: "", needs_user_attention: false });
    expect(Object.keys(ai?.[0] ?? {}).sort()).toEqual(
      "agent_id app_id created_at icon id message needs_user_attention state uri workspace_id".split(" "),
    );
  });

  test("[AP-2] with an unknown app, an unknown state or more than 160 bytes is rejected by field and not stored", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server, { apps: [{ slug: "ai" }] });
    const agent = createAgentClient(server, seeded);
    const validReport = { app_slug: "ai", state: "idle", message: "" };
    expect(await awaitRejection(agent.patch<unknown>(PATH, { ...validReport, app_slug: "other" }))).toEqual([
      400,
      "app_slug",
    ]);
    expect(await awaitRejection(agent.patch<unknown>(PATH, { ...validReport, state: "asleep" }))).toEqual([
      400,
      "state",
    ]);
    expect(await awaitRejection(agent.patch<unknown>(PATH, { ...validReport, message: "x".repeat(161) }))).toEqual([
      400,
      "message",
    ]);
    expect(await awaitRejection(agent.patch<unknown>(PATH, { ...validReport, message: "é".repeat(81) }))).toEqual([
      400,
      "message",
    ]);
    expect(await listStatuses(server, seeded)).toEqual([[]]);
    await agent.patch<unknown>(PATH, { ...validReport, message: "é".repeat(80) });
    await supersedeAgent(server, seeded);
    expect(await awaitRejection(agent.patch<unknown>(PATH, validReport))).toEqual([401, undefined]);
  });

  test("[AP-3] loses the control characters of its message", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server, { apps: [{ slug: "ai" }] });
    const message = "\u001b[31mred\u0007 \u0000line\r\none\ttwo\u0085";
    await createAgentClient(server, seeded).patch(PATH, { app_slug: "ai", state: "failure", message });
    expect((await listStatuses(server, seeded))[0]?.[0]?.message).toBe("[31mred line one two");
  });

  test("[AP-5] removes statuses of the same app beyond the newest 50", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server, { apps: [{ slug: "ai" }, { slug: "web" }] });
    const agent = createAgentClient(server, seeded);
    await agent.patch(PATH, { app_slug: "web", state: "idle", message: "old" });
    for (let i = 0; i < 55; i++) await agent.patch(PATH, { app_slug: "ai", state: "working", message: `step ${i}` });
    const [ai, web] = await listStatuses(server, seeded);
    expect(ai?.length).toBe(50);
    expect([ai?.[0]?.message, ai?.[49]?.message, web?.[0]?.message]).toEqual(["step 54", "step 5", "old"]);
  });
});

test("[AP-4] the workspace shows the newest status, watchers are notified, and a new build starts without one", async () => {
  await using world = await openWorld();
  const token = crypto.randomUUID();
  const manifest = {
    ...ECHO,
    resources: [{ name: "main", agents: [{ name: "dev", token, apps: [{ slug: "ai" }, { slug: "web" }] }] }],
  };
  const { template_id } = await seedTemplate(world.server, manifest);
  const { id } = await createWorkspace(world.admin, template_id);
  await awaitBuild(world.admin, id);
  using socket = await world.admin.socket(`/api/v2/workspaces/${id}/watch-ws`);
  const agent = new Client(world.server.url, token);
  await agent.patch(PATH, { app_slug: "web", state: "working", message: "first" });
  await agent.patch(PATH, { app_slug: "ai", state: "idle", message: "second" });
  const messages: (string | undefined)[] = [];
  while (messages.at(-1) !== "second") {
    const message = await socket.json<{ type: string; data: Workspace }>();
    if (message.type === "data") messages.push(message.data.latest_app_status?.message);
  }
  expect((await world.admin.get<Workspace>(`/api/v2/workspaces/${id}`)).latest_app_status).toMatchObject({
    state: "idle",
    message: "second",
  });
  await createBuild(world.admin, id, "stop");
  expect((await awaitBuild(world.admin, id)).latest_app_status).toBeNull();
});

describe("a status report over the agent's connection", () => {
  test("[AP-6] is handled the same way, except that 160 characters are allowed", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server, { apps: [{ slug: "ai" }] });
    await using connection = await connectAgent(server, seeded.agent_token);
    const report = (slug: string, state: number, message: string) =>
      connection.agent.updateAppStatus({
        slug,
        message,
        uri: "file:///work",
        state: state as UpdateAppStatusRequest_AppStatusState,
      });
    for (const [i, message] of ["a\u0000b", "é".repeat(160), "c", "d"].entries()) await report("ai", i, message);
    const [ai] = await listStatuses(server, seeded);
    expect(ai?.map(({ state, message }) => [state, message])).toEqual([
      ["failure", "d"],
      ["complete", "c"],
      ["idle", "é".repeat(160)],
      ["working", "ab"],
    ]);
    expect(ai?.[0]?.uri).toBe("file:///work");
    const invalidReports: [string, number, string][] = [
      ["other", 0, ""],
      ["ai", 9, ""],
      ["ai", 0, "x".repeat(161)],
    ];
    for (const [slug, state, message] of invalidReports) {
      expect(
        await report(slug, state, message).then(
          () => "stored",
          () => "refused",
        ),
      ).toBe("refused");
    }
    expect((await listStatuses(server, seeded))[0]?.length).toBe(4);
    expect(getContext(server).draining).toBe(false);
  });
});
