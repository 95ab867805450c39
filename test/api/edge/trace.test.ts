// The log entries of a request, its actor's mailbox and its commit group.
import { afterEach, expect } from "bun:test";
import { configureLogging, isTraceEnabled, resetLogging } from "#base/log.ts";
import { getCurrentRequests, runForRequests } from "#base/trace.ts";
import { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";

afterEach(resetLogging);

type Line = { area: string; message: string; request_id?: string } & Record<string, unknown>;

testInProcess("[CF-13] logs each request's steps with its ID if trace=debug, and nothing otherwise", async () => {
  await using server = await startTestServer();
  const client = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const agent = await seedAgent(server);
  const lines: Line[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line));
  const send = async (id?: string): Promise<string | null> => {
    const headers = { "service-session-token": agent.agent_token, "content-type": "application/json" };
    const response = await fetch(new URL("/api/v2/workspaceagents/me/logs?secret=hunter2", server.url), {
      method: "PATCH",
      headers: id === undefined ? headers : { ...headers, "x-request-id": id },
      body: JSON.stringify({ logs: [{ output: "planted-in-a-body" }] }),
    });
    expect(response.status).toBe(200);
    return response.headers.get("x-request-id");
  };

  configureLogging({ level: "debug", format: "json", write });
  configureLogging({ level: { level: "debug", areas: { trace: "info" } }, format: "json", write });
  expect(isTraceEnabled()).toBe(false);
  expect(await send()).toBeNull();
  expect(runForRequests(["r-0"], getCurrentRequests).size).toBe(0);
  expect(lines.filter(({ area }) => area === "trace")).toEqual([]);

  configureLogging({ level: { level: "warn", areas: { trace: "debug" } }, format: "json", write });
  const ownIds = ["r-1", "r-2", "r-3", "r-4"];
  expect(await Promise.all(ownIds.map(send))).toEqual(ownIds);
  const generatedId = (await send()) as string;
  expect((await client.get<{ username: string }>("/api/v2/users/me")).username).toBe(ADMIN.username);
  for (const id of [...ownIds, generatedId]) {
    const steps = lines.filter(({ request_id }) => request_id === id);
    expect(steps.map(({ message }) => message)).toEqual(["commit", "message", "request"]);
    expect(steps[0]).toMatchObject({ group: expect.any(Number), took_ms: expect.any(Number) });
    expect(steps[1]).toMatchObject({ actor: agent.agent_id, waited_ms: expect.any(Number) });
    expect(steps[2]).toMatchObject({ method: "PATCH", path: "/api/v2/workspaceagents/me/logs", status: 200 });
  }
  expect(lines.filter(({ area }) => area !== "trace")).toEqual([]);
  for (const secret of ["hunter2", "planted", agent.agent_token]) expect(JSON.stringify(lines)).not.toContain(secret);
});
