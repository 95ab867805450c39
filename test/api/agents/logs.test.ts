// Writing and reading an agent's log over real HTTP.
import { describe, expect, test } from "bun:test";
import { findAgent } from "#db/agents/agents.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import { Client } from "#src/client.ts";
import { getContext, type SeededAgent, seedAgent, seedUser, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";

const PATCH = "/api/v2/workspaceagents/me/logs";
const SOURCES = "/api/v2/workspaceagents/me/log-source";
const toLogsPath = (seeded: SeededAgent, query = "") => `/api/v2/workspaceagents/${seeded.agent_id}/logs${query}`;
const createAgentClient = (server: TestServer, seeded: SeededAgent) => new Client(server.url, seeded.agent_token);
const createOwnerClient = (server: TestServer, seeded: SeededAgent) => new Client(server.url, seeded.owner_token);
const loadRow = async (server: TestServer, seeded: SeededAgent) =>
  getContext(server).store.get(findAgent({ id: seeded.agent_id }));
const createBatch = (...outputs: string[]) => ({ logs: outputs.map((output) => ({ output })) });
const listOutputs = (logs: AgentLog[]) => logs.map(({ output }) => output);

describe("writing", () => {
  test("[LG-1] stores a batch in order with consecutive IDs, and responds with a message", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const response = await createAgentClient(server, seeded).patch<{ message: string }>(PATCH, {
      logs: [{ output: "one", level: "warn" }, { output: "two\nhalves" }, { output: "" }],
    });
    expect(response.message.length).toBeGreaterThan(0);
    const logs = await createOwnerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded));
    expect(listOutputs(logs)).toEqual(["one", "two\nhalves", ""]);
    expect(logs.map(({ level }) => level)).toEqual(["warn", "info", "info"]);
    const first = logs[0]?.id as number;
    expect(logs.map(({ id }) => id - first)).toEqual([0, 1, 2]);
  });

  test("[LG-2] replaces NUL and invalid characters, and counts bytes afterwards", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    await createAgentClient(server, seeded).patch(PATCH, createBatch("a\0b", "\ud800x", "é"));
    const logs = await createOwnerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded));
    expect(listOutputs(logs)).toEqual(["a\uFFFDb", "\uFFFDx", "é"]);
    expect((await loadRow(server, seeded))?.logs_length).toBe(5 + 4 + 2);
  });

  test("[LG-3] uses the agent's time of a line if it is within a day of the server's, otherwise the server's", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const anHourAgo = new Date(getContext(server).clock.now() - 3_600_000).toISOString();
    await createAgentClient(server, seeded).patch(PATCH, {
      logs: [anHourAgo, "0001-01-01T00:00:00Z"].map((created_at) => ({ created_at, output: "x" })),
    });
    const logs = await createOwnerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded));
    expect(logs[0]?.created_at).toBe(anHourAgo);
    expect(Math.abs(Date.parse(logs[1]?.created_at ?? "") - getContext(server).clock.now())).toBeLessThan(60_000);
  });

  test("[LG-4] returns 400 with the field for a malformed batch, and stores nothing", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const cases: [unknown, string][] = [
      [{ logs: [] }, "logs"],
      [{}, "logs"],
      [{ logs: 7 }, "logs"],
      [{ logs: [{ output: "fine" }, { output: 7 }] }, "logs.1.output"],
      [{ logs: [{ output: "fine" }, {}] }, "logs.1.output"],
      [{ logs: [{ output: "x", level: "loud" }] }, "logs.0.level"],
      [{ logs: [{ output: "fine" }, { output: "x", created_at: "yesterday" }] }, "logs.1.created_at"],
      [{ ...createBatch("x"), log_source_id: "no-uuid" }, "log_source_id"],
      [{ ...createBatch("x"), log_source_id: crypto.randomUUID() }, "log_source_id"],
      [{ logs: Array.from({ length: 10_001 }, () => ({ output: "" })) }, "logs"],
    ];
    for (const [batch, field] of cases) {
      const response = await createAgentClient(server, seeded).fetch("PATCH", PATCH, batch);
      const body = (await response.json()) as { validations?: { field: string }[] };
      // For a value that is not a list, the error may name its first element.
      const namedField = body.validations?.[0]?.field ?? "";
      expect([response.status, namedField === field || namedField.startsWith(`${field}.0`)]).toEqual([400, true]);
    }
    expect(await createOwnerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded))).toEqual([]);
    expect((await loadRow(server, seeded))?.logs_length).toBe(0);
  });

  test("[LG-5] rejects a batch that exceeds the exact limit as a whole, and every later one", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_LOG_LIMIT: "100" } });
    const seeded = await seedAgent(server);
    const notifications: string[] = [];
    getContext(server).topics.subscribe("workspace_changed", seeded.workspace_id, () => notifications.push("changed"));
    const agent = createAgentClient(server, seeded);
    const send = async (...outputs: string[]) => (await agent.fetch("PATCH", PATCH, createBatch(...outputs))).status;
    expect(await send("x".repeat(60))).toBe(200);
    expect(await send("x".repeat(40))).toBe(200);
    expect(notifications).toEqual(["changed"]);
    expect(await send("a", "")).toBe(413);
    expect(await send("")).toBe(413);
    expect(notifications).toEqual(["changed", "changed"]);
    expect(await loadRow(server, seeded)).toMatchObject({ logs_length: 100, logs_overflowed: true });
    expect(
      listOutputs(await createOwnerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded))).join("").length,
    ).toBe(100);
  });

  test("[LG-22] counts empty lines toward the limit, and allows an agent at most 1,000 sources", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_LOG_LIMIT: "10" } });
    const seeded = await seedAgent(server);
    const agent = createAgentClient(server, seeded);
    const send = async (count: number) =>
      (await agent.fetch("PATCH", PATCH, createBatch(...new Array<string>(count).fill("")))).status;
    expect([await send(10), await send(1)]).toEqual([200, 413]);
    const { agents } = getContext(server);
    const ids = Array.from({ length: 1000 }, () => crypto.randomUUID());
    // The source External already exists.
    for (const id of ids.slice(1)) await agents.ask(seeded.agent_id, "createLogSource", { id });
    const createSource = async (id: string | undefined) => (await agent.fetch("POST", SOURCES, { id })).status;
    expect([await createSource(ids[0]), await createSource(ids[1])]).toEqual([400, 200]);
  });

  test("[LG-5] stores every acknowledged batch of concurrent ones, which never exceed the limit together", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_LOG_LIMIT: "1000" } });
    const seeded = await seedAgent(server);
    const agent = createAgentClient(server, seeded);
    const lineTexts = Array.from({ length: 60 }, (_, i) => `${i}:`.padEnd(30, "."));
    const statuses = await Promise.all(
      lineTexts.map(async (line) => [line, (await agent.fetch("PATCH", PATCH, createBatch(line))).status] as const),
    );
    const acknowledged = statuses.filter(([, status]) => status === 200).map(([line]) => line);
    expect(acknowledged.length).toBe(33);
    expect(statuses.every(([, status]) => status === 200 || status === 413)).toBe(true);
    expect(listOutputs(await createOwnerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded))).sort()).toEqual(
      acknowledged.sort(),
    );
  });

  test("[LG-21] rejects only the invalid ones of concurrent batches", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const agent = createAgentClient(server, seeded);
    const bodies = Array.from({ length: 20 }, (_, i) =>
      i % 5 === 2 ? { ...createBatch(`${i}`), log_source_id: crypto.randomUUID() } : createBatch(`${i}`),
    );
    const statuses = await Promise.all(bodies.map(async (body) => (await agent.fetch("PATCH", PATCH, body)).status));
    expect(statuses).toEqual(bodies.map((_, i) => (i % 5 === 2 ? 400 : 200)));
    const stored = listOutputs(await createOwnerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded)));
    expect(stored.sort()).toEqual(bodies.flatMap((_, i) => (i % 5 === 2 ? [] : [`${i}`])).sort());
  });

  test("[LG-13] assigns lines without a source to External; creating a source again updates it", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const agent = createAgentClient(server, seeded);
    const id = crypto.randomUUID();
    for (const display_name of ["Build", "Again"]) {
      const response = await agent.fetch("POST", SOURCES, { id, display_name, icon: "/emojis/1f310.png" });
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ id, display_name, workspace_agent_id: seeded.agent_id });
    }
    await agent.patch(PATCH, { log_source_id: id, ...createBatch("from build") });
    await agent.patch(PATCH, { log_source_id: "00000000-0000-0000-0000-000000000000", ...createBatch("from nowhere") });
    const textResponse = await createOwnerClient(server, seeded).fetch("GET", toLogsPath(seeded, "?format=text"));
    expect(await textResponse.text()).toMatch(
      /\[agent\.main\|Again\] from build\n.*\[agent\.main\|External\] from nowhere\n$/s,
    );
    const agentView = await createOwnerClient(server, seeded).get<{ log_sources: object[] }>(
      `/api/v2/workspaceagents/${seeded.agent_id}`,
    );
    expect(agentView.log_sources[0]).toMatchObject({ id, display_name: "Again", icon: "/emojis/1f310.png" });
    const logs = await createOwnerClient(server, seeded).get<{ output: string; source_id: string }[]>(
      toLogsPath(seeded),
    );
    expect(logs.find(({ output }) => output === "from build")?.source_id).toBe(id);
    expect(logs.find(({ output }) => output === "from nowhere")?.source_id).not.toBe(id);
    expect((await agent.fetch("POST", SOURCES, { id: "nope" })).status).toBe(400);
    const genuineResponse = await fetch(new URL(SOURCES, server.url), {
      method: "POST",
      headers: { "Coder-Session-Token": seeded.agent_token, "content-type": "application/json" },
      body: JSON.stringify({ id: crypto.randomUUID() }),
    });
    expect(genuineResponse.status).toBe(201);
  });

  test("[LG-14] returns 401 to everyone except the agent of the latest build", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    expect((await createOwnerClient(server, seeded).fetch("PATCH", PATCH, createBatch("x"))).status).toBe(401);
    expect((await new Client(server.url).fetch("PATCH", PATCH, createBatch("x"))).status).toBe(401);
    await supersedeAgent(server, seeded);
    expect((await createAgentClient(server, seeded).fetch("PATCH", PATCH, createBatch("x"))).status).toBe(401);
  });
});

describe("reading", () => {
  test("[LG-15] treats after and before as exclusive bounds, alone and together", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    await createAgentClient(server, seeded).patch(PATCH, createBatch("0", "1", "2", "3", "4"));
    const owner = createOwnerClient(server, seeded);
    const allLogs = await owner.get<AgentLog[]>(toLogsPath(seeded));
    const getId = (i: number) => allLogs[i]?.id;
    const readOutputs = async (query: string) => listOutputs(await owner.get<AgentLog[]>(toLogsPath(seeded, query)));
    expect(await readOutputs(`?after=${getId(1)}`)).toEqual(["2", "3", "4"]);
    expect(await readOutputs(`?before=${getId(2)}`)).toEqual(["0", "1"]);
    expect(await readOutputs(`?after=${getId(0)}&before=${getId(3)}`)).toEqual(["1", "2"]);
    expect(await readOutputs(`?after=${getId(4)}`)).toEqual([]);
  });

  test("[LG-15] returns more lines than one page completely and in order", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const manyLines = Array.from({ length: 1700 }, (_, i) => `line ${i}`);
    await createAgentClient(server, seeded).patch(PATCH, createBatch(...manyLines));
    expect(listOutputs(await createOwnerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded)))).toEqual(manyLines);
  });

  test("[LG-16] returns text lines with time, level and source, and colors except for genuine clients", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    await createAgentClient(server, seeded).patch(PATCH, { logs: [{ output: "\x1b[1mbold\x1b[0m", level: "error" }] });
    const response = await createOwnerClient(server, seeded).fetch("GET", toLogsPath(seeded, "?format=text"));
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;
    const lineEnd = String.raw`\[agent\.main\|External\] \x1b\[1mbold\x1b\[0m\n$`;
    expect(await response.text()).toMatch(new RegExp(String.raw`^${time} \[\x1b\[31merror\x1b\[0m\] ${lineEnd}`));
    const genuineResponse = await fetch(new URL(toLogsPath(seeded, "?format=text"), server.url), {
      headers: { "Coder-Session-Token": seeded.owner_token },
    });
    expect(await genuineResponse.text()).toMatch(new RegExp(String.raw`^${time} \[error\] ${lineEnd}`));
  });

  test("[LG-17] returns 400 with the parameter for an invalid query", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const owner = createOwnerClient(server, seeded);
    const cases: [string, string[]][] = [
      ["?after=-1", ["after"]],
      ["?before=x", ["before"]],
      ["?format=xml", ["format"]],
      ["?format=text&follow=true", ["format"]],
      ["?follow=perhaps&after=1.5", ["after", "follow"]],
    ];
    for (const [query, fields] of cases) {
      const response = await owner.fetch("GET", toLogsPath(seeded, query));
      const body = (await response.json()) as { validations: { field: string }[] };
      expect([response.status, body.validations.map(({ field }) => field)]).toEqual([400, fields]);
    }
    expect((await owner.fetch("GET", "/api/v2/workspaceagents/no-uuid/logs")).status).toBe(400);
    expect((await owner.fetch("GET", toLogsPath(seeded, "?follow=true"))).status).toBe(400);
    expect((await owner.fetch("GET", toLogsPath(seeded, "?follow=false"))).status).toBe(200);
  });

  test("[LG-18] returns 404 to a caller who cannot see the workspace, as for a missing agent", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const outsider = new Client(server.url, (await seedUser(server)).token);
    const outsiderResponse = await outsider.fetch("GET", toLogsPath(seeded));
    const missingAgentResponse = await outsider.fetch("GET", `/api/v2/workspaceagents/${crypto.randomUUID()}/logs`);
    expect([outsiderResponse.status, missingAgentResponse.status]).toEqual([404, 404]);
    expect(await outsiderResponse.json()).toEqual(await missingAgentResponse.json());
    expect((await createAgentClient(server, seeded).fetch("GET", toLogsPath(seeded))).status).toBe(401);
  });

  test("[LG-19] returns 410 for removed endpoints, with their replacement", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const response = await createOwnerClient(server, seeded).fetch(
      "GET",
      `/api/v2/workspaceagents/${seeded.agent_id}/startup-logs`,
    );
    expect([response.status, ((await response.json()) as { detail: string }).detail]).toEqual([
      410,
      "Use workspaceagents/{workspaceagent}/logs.",
    ]);
    expect((await createAgentClient(server, seeded).fetch("GET", "/api/v2/workspaceagents/me/gitauth")).status).toBe(
      410,
    );
  });
});
