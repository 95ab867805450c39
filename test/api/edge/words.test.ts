// Validation errors: they name the invalid value with its index, and say what it must be.
import { expect, test } from "bun:test";
import { ParseError } from "elysia";
import { configureLogging, resetLogging } from "#base/log.ts";
import { CommitError } from "#db/engine/store.ts";
import type { Generic } from "#schema/generic.ts";
import { errorResponse } from "#src/api/http/errors.ts";
import { Client } from "#src/client.ts";
import { readFile } from "#src/daemon/http/files.ts";
import { createChat, openChatWorld } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { seedAgent } from "#test/support/seed.ts";

const world = await forFile(openChatWorld());

const getRejection = async (client: Client, method: string, path: string, body?: unknown) => {
  const response = await client.fetch(method, path, body);
  const { validations = [] } = (await response.json()) as Generic;
  return [response.status, ...validations.map(({ field, detail }) => `${field} ${detail}`)];
};

test("[HT-42] validation errors name the field and index and explain the problem in plain words", async () => {
  const { owner, organization_id } = world;
  const chat = { organization_id, content: [{ type: "text", text: "hello" }] };
  const send = (overrides: object) => getRejection(owner, "POST", "/api/v2/chats", Object.assign({}, chat, overrides));
  expect(await send({ mcp_server_ids: ["zz"] })).toEqual([400, "mcp_server_ids.0 must be a UUID"]);
  expect(await send({ mcp_server_ids: "zz" })).toEqual([400, "mcp_server_ids must be a list"]);
  expect(await send({ content: "hello" })).toEqual([400, "content must be a list"]);
  expect(await send({ content: undefined })).toEqual([400, "content is required"]);
  expect(await send({ labels: { a: 1 } })).toEqual([400, "labels.a must be a text"]);
});

test("[HT-42] validation errors do not show regular expressions", async () => {
  const admin = (await seedAgent(world.server)).owner_token;
  const client = new Client(world.server.url, admin);
  const rejection = await getRejection(client, "POST", "/api/v2/users/me/secrets", {
    name: "a b",
    value: "x",
    env_name: "1-",
  });
  expect(rejection).toEqual([
    400,
    "name has characters or a form that are not allowed here",
    "env_name has characters or a form that are not allowed here",
  ]);
});

test("[HT-42] a missing required field of any type is reported", async () => {
  const chat = await createChat(world, "one");
  const path = `/api/v2/chats/${chat.id}/tool-results`;
  const results = [{ tool_call_id: "a", output: null }, { tool_call_id: "b" }];
  expect(await getRejection(world.owner, "POST", path, { results })).toEqual([400, "results.1.output is required"]);
});

test("[HT-42] an agent ID must be a UUID, and a TTL must be whole milliseconds", async () => {
  const seeded = await seedAgent(world.server);
  const owner = new Client(world.server.url, seeded.owner_token);
  const workspacePath = `/api/v2/workspaces/${seeded.workspace_id}`;
  const usage = { agent_id: "zz", app_name: "ssh" };
  expect(await getRejection(owner, "POST", `${workspacePath}/usage`, usage)).toEqual([400, "agent_id must be a UUID"]);
  const ttl = await getRejection(owner, "PUT", `${workspacePath}/ttl`, { ttl_ms: 28_800_000.5 });
  expect(ttl).toEqual([400, "ttl_ms must be a whole number, or null"]);
});

test("[HT-42] an empty search term is rejected for every key", async () => {
  const search = (q: string) => getRejection(world.owner, "GET", `/api/v2/chats?q=${encodeURIComponent(q)}`);
  for (const key of ["title", "repo", "search"])
    expect(await search(`${key}:""`)).toEqual([400, `${key} There is nothing to search for.`]);
  expect((await getRejection(world.owner, "GET", `/api/v2/workspaces?q=${encodeURIComponent('name:""')}`))[0]).toBe(
    400,
  );
});

test("[HT-43] reading a workspace file without permission returns 403 before the response starts", async () => {
  // Not even root can read this file. Systems without it skip the test.
  const unreadable = "/proc/sys/vm/compact_memory";
  if (!(await Bun.file(unreadable).exists())) return;
  await expect(readFile(unreadable, 0, 10)).rejects.toMatchObject({
    kind: "forbidden",
    message: "The user may not do this.",
  });
});

test("[HT-43] does not log a body that the client aborts as a server error", () => {
  const lines: string[] = [];
  const logError = (error: unknown, signal: AbortSignal): string[] => {
    lines.length = 0;
    configureLogging({ level: "info", format: "json", write: (line) => void lines.push(line) });
    try {
      errorResponse(error, new Request("http://localhost/api/v2/chats", { method: "POST", signal }));
      return [...lines];
    } finally {
      resetLogging();
    }
  };
  // The runtime's error for a body whose connection was closed.
  const closed = new DOMException("The connection was closed.", "AbortError");
  expect(logError(closed, AbortSignal.abort())).toEqual([]);
  // The error from a route that reads its body before its caller is known.
  expect(logError(new ParseError(closed), AbortSignal.abort())).toEqual([]);
  expect(logError(closed, new AbortController().signal)).toHaveLength(1);
  expect(logError(new Error("a fault"), AbortSignal.abort())).toHaveLength(1);
});

test("[CP-73] reports an unreachable database as such, not as overload", async () => {
  const getResponse = async (reason: "unreachable" | "overloaded") => {
    const request = new Request("http://localhost/api/v2/chats");
    const response = errorResponse(new CommitError(reason, "no primary answers"), request);
    return [response.status, response.headers.get("retry-after"), ((await response.json()) as Generic).message];
  };
  expect(await getResponse("unreachable")).toEqual([
    503,
    "1",
    "The server's database is not responding. Please retry.",
  ]);
  expect(await getResponse("overloaded")).toEqual([503, "1", "The server is overloaded. Please retry."]);
});
