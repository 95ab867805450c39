// Showing an agent: every field of the specification, derived fields, access, and changes over time.

import { describe, expect, test } from "bun:test";
import { NEVER } from "#base/clock.ts";
import { makeAgentView, presentAgents } from "#domain/agents/present.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, type SeededAgent, seedAgent, seedUser, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { coordinate } from "#test/tailnet/peers.ts";
import { connectAgent } from "./rpc-agent.ts";

const toAgentPath = (seeded: SeededAgent) => `/api/v2/workspaceagents/${seeded.agent_id}`;
const getAgent = (server: TestServer, seeded: SeededAgent) =>
  new Client(server.url, seeded.owner_token).get<WorkspaceAgent>(toAgentPath(seeded));

describe("showing", () => {
  test("[AG-16] [AG-24] an agent has every field of the specification; times of events that have not happened are absent", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server, {
      agent: { directory: "~", environment_variables: { A: "1" }, display_apps: ["vscode"] },
      apps: [
        { slug: "b", display_order: 2 },
        { slug: "a", display_order: 1, healthcheck_url: "http://x", healthcheck_interval: 5, healthcheck_threshold: 3 },
      ],
      scripts: [{ run_on_start: true, start_blocks_login: true, timeout_seconds: 2 }],
      metadata: [{ key: "cpu", interval: 10, timeout: 5 }],
    });
    const agent = await getAgent(server, seeded);
    expect(Object.keys(agent).sort()).toEqual([
      "api_version",
      "apps",
      "architecture",
      "connection_timeout_seconds",
      "created_at",
      "directory",
      "display_apps",
      "environment_variables",
      "expanded_directory",
      "health",
      "id",
      "instance_id",
      "latency",
      "lifecycle_state",
      "log_sources",
      "logs_length",
      "logs_overflowed",
      "metadata",
      "name",
      "operating_system",
      "parent_id",
      "resource_id",
      "scripts",
      "startup_script_behavior",
      "status",
      "subsystems",
      "troubleshooting_url",
      "updated_at",
      "version",
    ]);
    expect(agent).toMatchObject({
      id: seeded.agent_id,
      resource_id: seeded.resource_id,
      status: "connecting",
      lifecycle_state: "created",
      health: { healthy: true },
      startup_script_behavior: "blocking",
      environment_variables: { A: "1" },
    });
    expect(agent.apps.map(({ slug }) => slug)).toEqual(["a", "b"]);
    expect(agent.apps[0]?.healthcheck).toEqual({ url: "http://x", interval: 5, threshold: 3 });
    expect(agent.scripts[0]).toMatchObject({ timeout: 2_000_000_000 });
    expect(agent.scripts[0] && "status" in agent.scripts[0]).toBe(false);
    expect(agent.metadata[0]?.description).toMatchObject({ interval: 10, timeout: 5 });
    expect(agent.metadata[0]?.result).toEqual({ collected_at: NEVER, age: 0, value: "", error: "" });
  });

  test("[AG-16] a missing parent is an object for clients of Slipway and null for genuine clients", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    expect((await getAgent(server, seeded)).parent_id).toMatchObject({ valid: false });
    const headers = { "Coder-Session-Token": seeded.owner_token };
    const genuine = await fetch(new URL(toAgentPath(seeded), server.url), { headers });
    expect(((await genuine.json()) as WorkspaceAgent).parent_id).toBeNull();
  });

  test("[AG-17] agents are grouped by resource, in the requested order", async () => {
    await using server = await startTestServer();
    const view = makeAgentView(getContext(server), { compat: false });
    const soloAgent = await seedAgent(server, { agent: { name: "solo" }, apps: [{}] });
    const otherAgent = await seedAgent(server);
    const agents = await presentAgents(view, [soloAgent.resource_id, otherAgent.resource_id, "none"]);
    expect([...agents].map(([id, list]) => [id, list.map(({ name, apps }) => [name, apps.length])])).toEqual([
      [soloAgent.resource_id, [["solo", 1]]],
      [otherAgent.resource_id, [["main", 0]]],
      ["none", []],
    ]);
  });

  test("[AG-18] people who can see the workspace see its agents, including old ones; other users get 404, agents 401", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const { organization_id } = seeded;
    const fetchStatus = async (createToken: string) =>
      (await new Client(server.url, createToken).fetch("GET", toAgentPath(seeded))).status;
    const createToken = async (roles: string[], organizationId?: string) =>
      (await seedUser(server, { roles, ...(organizationId ? { organization_id: organizationId } : {}) })).token;
    expect(await fetchStatus(seeded.owner_token)).toBe(200);
    expect(await fetchStatus(await createToken(["owner"]))).toBe(200);
    expect(await fetchStatus(await createToken(["template-admin"]))).toBe(200);
    expect(await fetchStatus(await createToken([], organization_id))).toBe(404);
    expect(await fetchStatus(await createToken([]))).toBe(404);
    expect(await fetchStatus(await createToken(["user-admin"]))).toBe(404);
    expect(await fetchStatus(seeded.agent_token)).toBe(401);
    await supersedeAgent(server, seeded);
    expect(await fetchStatus(seeded.owner_token)).toBe(200);
    expect((await new Client(server.url, seeded.owner_token).fetch("GET", "/api/v2/workspaceagents/x")).status).toBe(
      404,
    );
  });
});

describe("over time", () => {
  test("[AG-1] an agent that never connects times out", async () => {
    const clock = new ManualClock(Date.now());
    await using server = await startTestServer({ clock });
    const seeded = await seedAgent(server);
    expect((await getAgent(server, seeded)).status).toBe("connecting");
    clock.advance(120_001);
    expect(await getAgent(server, seeded)).toMatchObject({
      status: "timeout",
      health: { healthy: false, reason: "agent is taking too long to connect" },
    });
  });

  test("[AG-14] a connection that answers pings stays connected, without notifying watchers", async () => {
    const clock = new ManualClock(Date.now());
    await using server = await startTestServer({ clock });
    const seeded = await seedAgent(server);
    await using connection = await connectAgent(server, seeded.agent_token);
    await connection.agent.getServiceBanner({});
    const started = clock.now();
    const notifications: unknown[] = [];
    getContext(server).topics.subscribe("workspace_changed", seeded.workspace_id, (event) => notifications.push(event));
    for (let i = 0; i < 12; i++) {
      clock.advance(15_000);
      // The connection sends the response to the ping before this call, so the server has both.
      await connection.agent.getServiceBanner({});
      await getContext(server).agents.ask(seeded.agent_id, "settle", {});
    }
    const agent = await getAgent(server, seeded);
    expect(agent.status).toBe("connected");
    expect(Date.parse(agent.last_connected_at ?? "")).toBeGreaterThanOrEqual(started + 165_000);
    expect(notifications).toEqual([]);
  });

  test("[AG-19] after a crash, an agent that does not reconnect becomes disconnected 30 s after its last heartbeat", async () => {
    const clock = new ManualClock(Date.now());
    await using server = await startTestServer({ clock });
    const now = clock.now();
    const seeded = await seedAgent(server, {
      agent: { first_connected_at: now - 60_000, last_connected_at: now - 5000, lifecycle_state: "ready" },
    });
    expect((await getAgent(server, seeded)).status).toBe("connected");
    clock.advance(25_001);
    expect(await getAgent(server, seeded)).toMatchObject({
      status: "disconnected",
      health: { healthy: false, reason: "agent has lost its connection" },
    });
  });

  test("[AG-20] the server closes a connection that answers no ping for 30 s, and shows the agent as disconnected", async () => {
    const clock = new ManualClock(Date.now());
    await using server = await startTestServer({ clock });
    const seeded = await seedAgent(server);
    using socket = await new Client(server.url, seeded.agent_token).socket("/api/v2/workspaceagents/me/rpc");
    await getContext(server).agents.ask(seeded.agent_id, "settle", {});
    expect((await getAgent(server, seeded)).status).toBe("connected");
    clock.advance(15_000);
    clock.advance(30_001);
    await socket.closed;
    await getContext(server).agents.ask(seeded.agent_id, "settle", {});
    const agent = await getAgent(server, seeded);
    expect([agent.status, typeof agent.disconnected_at]).toEqual(["disconnected", "string"]);
  });
});

test("[AG-22] an agent shows its latency to the relays by name while it is connected", async () => {
  await using server = await startTestServer();
  const seeded = await seedAgent(server);
  const owner = new Client(server.url, seeded.owner_token);
  const loadLatency = async () =>
    (await owner.get<WorkspaceAgent>(`/api/v2/workspaceagents/${seeded.agent_id}`)).latency;
  const connection = await connectAgent(server, seeded.agent_token);
  expect(await loadLatency()).toEqual({});
  const stream = await coordinate(connection.tailnet);
  const derpLatency = { "999-v4": 0.25, "999-v6": 0.125, "7-v4": 0.5, nonsense: 1 };
  await stream.send({ updateSelf: { node: { preferredDerp: 999, derpLatency } } });
  await until(async () => Object.keys(await loadLatency()).length > 0);
  expect(await loadLatency()).toEqual({
    "Coder Embedded Relay": { latency_ms: 125, preferred: true },
    "Unnamed 7": { latency_ms: 500, preferred: false },
  });
  await connection[Symbol.asyncDispose]();
  await until(async () => Object.keys(await loadLatency()).length === 0);
});
