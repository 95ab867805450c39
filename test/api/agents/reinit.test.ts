// Agents that wait for the claim of their workspace, and agents that store a snapshot of a task's messages.
import { describe, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import { updateBy } from "#db/engine/sql.ts";
import { workspaces } from "#db/schema/workspaces.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { Client } from "#src/client.ts";
import { type ReadEvent, readEvents } from "#test/support/net/event-reader.ts";
import { getContext, seedAgent, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const REINIT = "/api/v2/workspaceagents/me/reinit";
const updateWorkspace = updateBy(workspaces, workspaces.id);
const events = { headers: { Accept: "text/event-stream" } };

/** Seeds an agent of a prebuilt workspace. */
const seedPrepared = async (server: TestServer) => {
  const seeded = await seedAgent(server);
  await getContext(server).store.commit([
    updateWorkspace(seeded.workspace_id, { owner_id: PREBUILDS_USER_ID, name: `ready-${uuid().slice(0, 8)}` }),
  ]);
  return { ...seeded, agent: new Client(server.url, seeded.agent_token) };
};

const awaitFollower = async (server: TestServer, workspace_id: string): Promise<void> => {
  const { topics, streams } = getContext(server);
  await until(() => topics.hasListeners("reinit", workspace_id) && streams.size > 0);
};

describe("an agent of an ordinary workspace", () => {
  test("[RI-1] gets 409 immediately, with or without waiting, as events or as JSON", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const agent = new Client(server.url, seeded.agent_token);
    for (const query of ["", "?wait=true", "?wait=false"]) {
      for (const options of [{}, events]) {
        const response = await agent.fetch("GET", REINIT + query, undefined, options);
        expect(response.status).toBe(409);
        expect(await response.json()).toHaveProperty("message");
      }
    }
    expect((await agent.fetch("GET", `${REINIT}?wait=perhaps`)).status).toBe(400);
    expect((await new Client(server.url, seeded.owner_token).fetch("GET", REINIT)).status).toBe(401);
    const { topics, streams } = getContext(server);
    expect([topics.hasListeners("reinit", seeded.workspace_id), streams.size]).toEqual([false, 0]);
  });
});

describe("an agent of a prebuilt workspace", () => {
  test("[RI-2] gets one event when the workspace is claimed, after which the stream ends", async () => {
    await using server = await startTestServer();
    const { agent, workspace_id } = await seedPrepared(server);
    const response = await agent.fetch("GET", `${REINIT}?wait=true`, undefined, events);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    await awaitFollower(server, workspace_id);
    const owner_id = uuid();
    getContext(server).topics.publish("reinit", workspace_id, { owner_id });
    getContext(server).topics.publish("reinit", workspace_id, { owner_id: uuid() });
    const received: ReadEvent[] = [];
    for await (const event of readEvents(response)) received.push(event);
    expect(received).toEqual([
      { event: "ping" },
      { event: "data", data: { reason: "prebuild_claimed", workspace_id, owner_id } },
    ]);
    expect(getContext(server).topics.hasListeners("reinit", workspace_id)).toBe(false);
  });

  test("[RI-3] gets one JSON response if it does not request events; a genuine agent always gets events", async () => {
    await using server = await startTestServer();
    const { agent, workspace_id, agent_token } = await seedPrepared(server);
    const owner_id = uuid();
    const claimResponse = agent.get(REINIT);
    await awaitFollower(server, workspace_id);
    getContext(server).topics.publish("reinit", workspace_id, { owner_id });
    expect(await claimResponse).toEqual({ reason: "prebuild_claimed", workspace_id, owner_id });
    const headers = { "Coder-Session-Token": agent_token };
    const abort = new AbortController();
    const genuineResponse = await fetch(new URL(REINIT, server.url), { headers, signal: abort.signal });
    expect(genuineResponse.headers.get("content-type")).toBe("text/event-stream");
    abort.abort();
    const { topics } = getContext(server);
    await until(() => !topics.hasListeners("reinit", workspace_id));
  });

  test("[RI-4] stops waiting when a newer build replaces it, when it disconnects and when the server stops", async () => {
    await using server = await startTestServer();
    const { topics, streams } = getContext(server);
    const replacedAgent = await seedPrepared(server);
    const stream = await replacedAgent.agent.fetch("GET", REINIT, undefined, events);
    await awaitFollower(server, replacedAgent.workspace_id);
    await supersedeAgent(server, replacedAgent);
    const received: ReadEvent[] = [];
    for await (const event of readEvents(stream)) received.push(event);
    expect(received).toEqual([{ event: "ping" }]);

    const { agent, workspace_id } = await seedPrepared(server);
    const abort = new AbortController();
    const canceledWait = agent.fetch("GET", REINIT, undefined, { signal: abort.signal }).catch(() => "canceled");
    await awaitFollower(server, workspace_id);
    abort.abort();
    expect(await canceledWait).toBe("canceled");
    await until(() => !topics.hasListeners("reinit", workspace_id));
    expect(streams.size).toBe(0);

    const waiting = agent.fetch("GET", REINIT);
    await awaitFollower(server, workspace_id);
    streams.endAll();
    expect((await waiting).status).toBe(503);
  });
});

describe("the snapshot of a task's messages", () => {
  const toSnapshotPath = (task: string, query = "?format=agentapi") =>
    `/api/v2/workspaceagents/me/tasks/${task}/log-snapshot${query}`;

  test("[RI-5] returns 400 for a malformed call, 413 above 64 KiB, and 404 for an unknown task", async () => {
    await using server = await startTestServer();
    const agent = new Client(server.url, (await seedAgent(server)).agent_token);
    const send = async (path: string, body: unknown) => {
      const response = await agent.fetch("POST", path, body);
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    const body = { messages: [{ id: 1, role: "agent", content: "done" }] };
    expect((await send(toSnapshotPath("not-an-id"), body)).status).toBe(400);
    expect((await send(toSnapshotPath(uuid(), ""), body)).status).toBe(400);
    expect((await send(toSnapshotPath(uuid(), "?format=text"), body)).status).toBe(400);
    expect((await send(toSnapshotPath(uuid()), body)).status).toBe(404);
    const maxTextLength = 65_536 - JSON.stringify({ messages: [""] }).length;
    expect((await send(toSnapshotPath(uuid()), { messages: ["x".repeat(maxTextLength)] })).status).toBe(404);
    expect(await send(toSnapshotPath(uuid()), { messages: ["x".repeat(maxTextLength + 1)] })).toEqual({
      status: 413,
      body: { message: "Request body too large.", detail: "Maximum request body size is 65536 bytes." },
    });
  });
});
