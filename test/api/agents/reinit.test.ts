// Waiting for a claim, and the snapshot of a task's messages: the responses to agents of existing workspaces.
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

describe("ordinary workspaces", () => {
  test("[RI-1] get 409 immediately, with or without waiting, as events or as JSON, and nothing stays open", async () => {
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

describe("prebuilt workspaces", () => {
  test("[RI-2] an event stream sends one event when the workspace is claimed, and ends", async () => {
    await using server = await startTestServer();
    const { agent, workspace_id } = await seedPrepared(server);
    const response = await agent.fetch("GET", `${REINIT}?wait=true`, undefined, events);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    await awaitFollower(server, workspace_id);
    const owner_id = uuid();
    getContext(server).topics.publish("reinit", workspace_id, { owner_id });
    getContext(server).topics.publish("reinit", workspace_id, { owner_id: uuid() });
    const seen: ReadEvent[] = [];
    for await (const event of readEvents(response)) seen.push(event);
    expect(seen).toEqual([
      { event: "ping" },
      { event: "data", data: { reason: "prebuild_claimed", workspace_id, owner_id } },
    ]);
    expect(getContext(server).topics.hasListeners("reinit", workspace_id)).toBe(false);
  });

  test("[RI-3] without events it is one JSON response when it happens; a genuine agent always reads events", async () => {
    await using server = await startTestServer();
    const { agent, workspace_id, agent_token } = await seedPrepared(server);
    const owner_id = uuid();
    const answer = agent.get(REINIT);
    await awaitFollower(server, workspace_id);
    getContext(server).topics.publish("reinit", workspace_id, { owner_id });
    expect(await answer).toEqual({ reason: "prebuild_claimed", workspace_id, owner_id });
    const headers = { "Coder-Session-Token": agent_token };
    const abort = new AbortController();
    const genuine = await fetch(new URL(REINIT, server.url), { headers, signal: abort.signal });
    expect(genuine.headers.get("content-type")).toBe("text/event-stream");
    abort.abort();
    const { topics } = getContext(server);
    await until(() => !topics.hasListeners("reinit", workspace_id));
  });

  test("[RI-4] the wait ends when a newer build takes over, when the caller disconnects and when the server stops", async () => {
    await using server = await startTestServer();
    const { topics, streams } = getContext(server);
    const replaced = await seedPrepared(server);
    const stream = await replaced.agent.fetch("GET", REINIT, undefined, events);
    await awaitFollower(server, replaced.workspace_id);
    await supersedeAgent(server, replaced);
    const seen: ReadEvent[] = [];
    for await (const event of readEvents(stream)) seen.push(event);
    expect(seen).toEqual([{ event: "ping" }]);

    const { agent, workspace_id } = await seedPrepared(server);
    const abort = new AbortController();
    const abandonedWait = agent.fetch("GET", REINIT, undefined, { signal: abort.signal }).catch(() => "left");
    await awaitFollower(server, workspace_id);
    abort.abort();
    expect(await abandonedWait).toBe("left");
    await until(() => !topics.hasListeners("reinit", workspace_id));
    expect(streams.size).toBe(0);

    const waiting = agent.fetch("GET", REINIT);
    await awaitFollower(server, workspace_id);
    streams.endAll();
    expect((await waiting).status).toBe(503);
  });
});

describe("the snapshot of a task's messages", () => {
  const path = (task: string, query = "?format=agentapi") =>
    `/api/v2/workspaceagents/me/tasks/${task}/log-snapshot${query}`;

  test("[RI-5] a malformed call is 400, more than 64 KiB is 413 with a fixed message, and an unknown task 404", async () => {
    await using server = await startTestServer();
    const agent = new Client(server.url, (await seedAgent(server)).agent_token);
    const send = async (where: string, body: unknown) => {
      const response = await agent.fetch("POST", where, body);
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    const body = { messages: [{ id: 1, role: "agent", content: "done" }] };
    expect((await send(path("not-an-id"), body)).status).toBe(400);
    expect((await send(path(uuid(), ""), body)).status).toBe(400);
    expect((await send(path(uuid(), "?format=text"), body)).status).toBe(400);
    expect((await send(path(uuid()), body)).status).toBe(404);
    const room = 65_536 - JSON.stringify({ messages: [""] }).length;
    expect((await send(path(uuid()), { messages: ["x".repeat(room)] })).status).toBe(404);
    expect(await send(path(uuid()), { messages: ["x".repeat(room + 1)] })).toEqual({
      status: 413,
      body: { message: "Request body too large.", detail: "Maximum request body size is 65536 bytes." },
    });
  });
});
