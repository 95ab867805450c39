// Log lines written by an agent and read by people, over real HTTP.
import { describe, expect, test } from "bun:test";
import { findAgent } from "#db/agents/agents.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import { Client } from "#src/client.ts";
import { getContext, type SeededAgent, seedAgent, seedUser, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";

const PATCH = "/api/v2/workspaceagents/me/logs";
const SOURCES = "/api/v2/workspaceagents/me/log-source";
const toLogsPath = (seeded: SeededAgent, query = "") => `/api/v2/workspaceagents/${seeded.agent_id}/logs${query}`;
const agentClient = (server: TestServer, seeded: SeededAgent) => new Client(server.url, seeded.agent_token);
const ownerClient = (server: TestServer, seeded: SeededAgent) => new Client(server.url, seeded.owner_token);
const row = async (server: TestServer, seeded: SeededAgent) =>
  getContext(server).store.get(findAgent({ id: seeded.agent_id }));
const lines = (...outputs: string[]) => ({ logs: outputs.map((output) => ({ output })) });
const outputs = (logs: AgentLog[]) => logs.map(({ output }) => output);

describe("writing", () => {
  test("[LG-1] a batch is acknowledged with a message, stored in order with consecutive IDs, and read back completely", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const answer = await agentClient(server, seeded).patch<{ message: string }>(PATCH, {
      logs: [{ output: "one", level: "warn" }, { output: "two\nhalves" }, { output: "" }],
    });
    expect(answer.message.length).toBeGreaterThan(0);
    const logs = await ownerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded));
    expect(outputs(logs)).toEqual(["one", "two\nhalves", ""]);
    expect(logs.map(({ level }) => level)).toEqual(["warn", "info", "info"]);
    const first = logs[0]?.id as number;
    expect(logs.map(({ id }) => id - first)).toEqual([0, 1, 2]);
  });

  test("[LG-2] NUL and invalid characters are replaced, and bytes are counted afterwards", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    await agentClient(server, seeded).patch(PATCH, lines("a\0b", "\ud800x", "é"));
    const logs = await ownerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded));
    expect(outputs(logs)).toEqual(["a\uFFFDb", "\uFFFDx", "é"]);
    expect((await row(server, seeded))?.logs_length).toBe(5 + 4 + 2);
  });

  test("[LG-3] the time of a line is the agent's if it is within a day, else the server's", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const near = new Date(getContext(server).clock.now() - 3_600_000).toISOString();
    await agentClient(server, seeded).patch(PATCH, {
      logs: [near, "0001-01-01T00:00:00Z"].map((created_at) => ({ created_at, output: "x" })),
    });
    const logs = await ownerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded));
    expect(logs[0]?.created_at).toBe(near);
    expect(Math.abs(Date.parse(logs[1]?.created_at ?? "") - getContext(server).clock.now())).toBeLessThan(60_000);
  });

  test("[LG-4] malformed batches return 400 with the field named and store nothing", async () => {
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
      [{ ...lines("x"), log_source_id: "no-uuid" }, "log_source_id"],
      [{ ...lines("x"), log_source_id: crypto.randomUUID() }, "log_source_id"],
      [{ logs: Array.from({ length: 10_001 }, () => ({ output: "" })) }, "logs"],
    ];
    for (const [body, field] of cases) {
      const response = await agentClient(server, seeded).fetch("PATCH", PATCH, body);
      const answer = (await response.json()) as { validations?: { field: string }[] };
      // For a value that is not a list, the error may name its first element.
      const named = answer.validations?.[0]?.field ?? "";
      expect([response.status, named === field || named.startsWith(`${field}.0`)]).toEqual([400, true]);
    }
    expect(await ownerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded))).toEqual([]);
    expect((await row(server, seeded))?.logs_length).toBe(0);
  });

  test("[LG-5] the limit is exact; a batch that exceeds it is refused whole, and so is every later one", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_LOG_LIMIT: "100" } });
    const seeded = await seedAgent(server);
    const seen: string[] = [];
    getContext(server).topics.subscribe("workspace_changed", seeded.workspace_id, () => seen.push("changed"));
    const agent = agentClient(server, seeded);
    const send = async (...outputs: string[]) => (await agent.fetch("PATCH", PATCH, lines(...outputs))).status;
    expect(await send("x".repeat(60))).toBe(200);
    expect(await send("x".repeat(40))).toBe(200);
    expect(seen).toEqual(["changed"]);
    expect(await send("a", "")).toBe(413);
    expect(await send("")).toBe(413);
    expect(seen).toEqual(["changed", "changed"]);
    expect(await row(server, seeded)).toMatchObject({ logs_length: 100, logs_overflowed: true });
    expect(outputs(await ownerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded))).join("").length).toBe(100);
  });

  test("[LG-22] empty lines are charged, so that they are bounded; an agent has at most 1,000 sources", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_LOG_LIMIT: "10" } });
    const seeded = await seedAgent(server);
    const agent = agentClient(server, seeded);
    const send = async (count: number) =>
      (await agent.fetch("PATCH", PATCH, lines(...new Array<string>(count).fill("")))).status;
    expect([await send(10), await send(1)]).toEqual([200, 413]);
    const { agents } = getContext(server);
    const ids = Array.from({ length: 1000 }, () => crypto.randomUUID());
    // The source External already exists.
    for (const id of ids.slice(1)) await agents.ask(seeded.agent_id, "createLogSource", { id });
    const make = async (id: string | undefined) => (await agent.fetch("POST", SOURCES, { id })).status;
    expect([await make(ids[0]), await make(ids[1])]).toEqual([400, 200]);
  });

  test("[LG-5] concurrent batches never exceed the limit together, and every acknowledged one is stored", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_AGENT_LOG_LIMIT: "1000" } });
    const seeded = await seedAgent(server);
    const agent = agentClient(server, seeded);
    const names = Array.from({ length: 60 }, (_, i) => `${i}:`.padEnd(30, "."));
    const statuses = await Promise.all(
      names.map(async (name) => [name, (await agent.fetch("PATCH", PATCH, lines(name))).status] as const),
    );
    const stored = statuses.filter(([, status]) => status === 200).map(([name]) => name);
    expect(stored.length).toBe(33);
    expect(statuses.every(([, status]) => status === 200 || status === 413)).toBe(true);
    expect(outputs(await ownerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded))).sort()).toEqual(
      stored.sort(),
    );
  });

  test("[LG-21] of concurrent batches, the one that breaks a rule is refused alone", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const agent = agentClient(server, seeded);
    const bodies = Array.from({ length: 20 }, (_, i) =>
      i % 5 === 2 ? { ...lines(`${i}`), log_source_id: crypto.randomUUID() } : lines(`${i}`),
    );
    const statuses = await Promise.all(bodies.map(async (body) => (await agent.fetch("PATCH", PATCH, body)).status));
    expect(statuses).toEqual(bodies.map((_, i) => (i % 5 === 2 ? 400 : 200)));
    const stored = outputs(await ownerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded)));
    expect(stored.sort()).toEqual(bodies.flatMap((_, i) => (i % 5 === 2 ? [] : [`${i}`])).sort());
  });

  test("[LG-13] lines without a source belong to External; a source is created once and may be created again", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const agent = agentClient(server, seeded);
    const id = crypto.randomUUID();
    for (const display_name of ["Build", "Again"]) {
      const response = await agent.fetch("POST", SOURCES, { id, display_name, icon: "/emojis/1f310.png" });
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ id, display_name, workspace_agent_id: seeded.agent_id });
    }
    await agent.patch(PATCH, { log_source_id: id, ...lines("from build") });
    await agent.patch(PATCH, { log_source_id: "00000000-0000-0000-0000-000000000000", ...lines("from nowhere") });
    const text = await ownerClient(server, seeded).fetch("GET", toLogsPath(seeded, "?format=text"));
    expect(await text.text()).toMatch(
      /\[agent\.main\|Again\] from build\n.*\[agent\.main\|External\] from nowhere\n$/s,
    );
    const sources = await ownerClient(server, seeded).get<{ log_sources: object[] }>(
      `/api/v2/workspaceagents/${seeded.agent_id}`,
    );
    expect(sources.log_sources[0]).toMatchObject({ id, display_name: "Again", icon: "/emojis/1f310.png" });
    const logs = await ownerClient(server, seeded).get<{ output: string; source_id: string }[]>(toLogsPath(seeded));
    expect(logs.find(({ output }) => output === "from build")?.source_id).toBe(id);
    expect(logs.find(({ output }) => output === "from nowhere")?.source_id).not.toBe(id);
    expect((await agent.fetch("POST", SOURCES, { id: "nope" })).status).toBe(400);
    const compat = await fetch(new URL(SOURCES, server.url), {
      method: "POST",
      headers: { "Coder-Session-Token": seeded.agent_token, "content-type": "application/json" },
      body: JSON.stringify({ id: crypto.randomUUID() }),
    });
    expect(compat.status).toBe(201);
  });

  test("[LG-14] only the agent of the latest build can write: users, anonymous callers and old agents get 401", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    expect((await ownerClient(server, seeded).fetch("PATCH", PATCH, lines("x"))).status).toBe(401);
    expect((await new Client(server.url).fetch("PATCH", PATCH, lines("x"))).status).toBe(401);
    await supersedeAgent(server, seeded);
    expect((await agentClient(server, seeded).fetch("PATCH", PATCH, lines("x"))).status).toBe(401);
  });
});

describe("reading", () => {
  test("[LG-15] after and before are exclusive bounds, alone and together", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    await agentClient(server, seeded).patch(PATCH, lines("0", "1", "2", "3", "4"));
    const owner = ownerClient(server, seeded);
    const allLogs = await owner.get<AgentLog[]>(toLogsPath(seeded));
    const id = (i: number) => allLogs[i]?.id;
    const read = async (query: string) => outputs(await owner.get<AgentLog[]>(toLogsPath(seeded, query)));
    expect(await read(`?after=${id(1)}`)).toEqual(["2", "3", "4"]);
    expect(await read(`?before=${id(2)}`)).toEqual(["0", "1"]);
    expect(await read(`?after=${id(0)}&before=${id(3)}`)).toEqual(["1", "2"]);
    expect(await read(`?after=${id(4)}`)).toEqual([]);
  });

  test("[LG-15] more lines than one page are returned completely and in order", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const many = Array.from({ length: 1700 }, (_, i) => `line ${i}`);
    await agentClient(server, seeded).patch(PATCH, lines(...many));
    expect(outputs(await ownerClient(server, seeded).get<AgentLog[]>(toLogsPath(seeded)))).toEqual(many);
  });

  test("[LG-16] text has a time, a level, a source and a line feed; colors only for callers of the specification", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    await agentClient(server, seeded).patch(PATCH, { logs: [{ output: "\x1b[1mbold\x1b[0m", level: "error" }] });
    const response = await ownerClient(server, seeded).fetch("GET", toLogsPath(seeded, "?format=text"));
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;
    const lineEnd = String.raw`\[agent\.main\|External\] \x1b\[1mbold\x1b\[0m\n$`;
    expect(await response.text()).toMatch(new RegExp(String.raw`^${time} \[\x1b\[31merror\x1b\[0m\] ${lineEnd}`));
    const plain = await fetch(new URL(toLogsPath(seeded, "?format=text"), server.url), {
      headers: { "Coder-Session-Token": seeded.owner_token },
    });
    expect(await plain.text()).toMatch(new RegExp(String.raw`^${time} \[error\] ${lineEnd}`));
  });

  test("[LG-17] invalid queries return 400 with the parameter named", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const owner = ownerClient(server, seeded);
    const cases: [string, string[]][] = [
      ["?after=-1", ["after"]],
      ["?before=x", ["before"]],
      ["?format=xml", ["format"]],
      ["?format=text&follow=true", ["format"]],
      ["?follow=perhaps&after=1.5", ["after", "follow"]],
    ];
    for (const [query, fields] of cases) {
      const response = await owner.fetch("GET", toLogsPath(seeded, query));
      const answer = (await response.json()) as { validations: { field: string }[] };
      expect([response.status, answer.validations.map(({ field }) => field)]).toEqual([400, fields]);
    }
    expect((await owner.fetch("GET", "/api/v2/workspaceagents/no-uuid/logs")).status).toBe(400);
    expect((await owner.fetch("GET", toLogsPath(seeded, "?follow=true"))).status).toBe(400);
    expect((await owner.fetch("GET", toLogsPath(seeded, "?follow=false"))).status).toBe(200);
  });

  test("[LG-18] a caller who may not see the workspace gets 404, as for a missing agent", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const outsider = new Client(server.url, (await seedUser(server)).token);
    const outsiderResponse = await outsider.fetch("GET", toLogsPath(seeded));
    const nowhere = await outsider.fetch("GET", `/api/v2/workspaceagents/${crypto.randomUUID()}/logs`);
    expect([outsiderResponse.status, nowhere.status]).toEqual([404, 404]);
    expect(await outsiderResponse.json()).toEqual(await nowhere.json());
    expect((await agentClient(server, seeded).fetch("GET", toLogsPath(seeded))).status).toBe(401);
  });

  test("[LG-19] removed endpoints say so and name their replacement", async () => {
    await using server = await startTestServer();
    const seeded = await seedAgent(server);
    const old = await ownerClient(server, seeded).fetch(
      "GET",
      `/api/v2/workspaceagents/${seeded.agent_id}/startup-logs`,
    );
    expect([old.status, ((await old.json()) as { detail: string }).detail]).toEqual([
      410,
      "Use workspaceagents/{workspaceagent}/logs.",
    ]);
    expect((await agentClient(server, seeded).fetch("GET", "/api/v2/workspaceagents/me/gitauth")).status).toBe(410);
  });
});
