// Bodies that are expensive to validate must not delay other requests. The server runs in a separate process. The limit is generous for a
// busy machine, but below the cost of accepting such bodies.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { findCostProblem, MAX_DEPTH, MAX_MEMBERS, MAX_VALUES } from "#base/json/cost.ts";
import { Client } from "#src/client.ts";
import { fetchDocument, fillPath, listOperations, type Schema } from "#test/fuzz/operations.ts";
import { createExampleValue } from "#test/fuzz/values.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { type ServeProcess, startServe } from "./serve-process.ts";

const MAX_WAIT_MS = 1_000;
/** The shortest of several waits counts: an expensive body always delays others, a busy machine only sometimes. */
const MAX_ATTEMPTS = 3;

const directory = tempDirectory();
let serve: ServeProcess;
let admin: Client;
beforeAll(async () => {
  serve = await startServe(directory.path);
  admin = await new Client(serve.url).signIn(ADMIN.email, ADMIN.password);
});
afterAll(async () => {
  await serve[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

/** Returns the longest time a health check waited during `send`; the minimum of several attempts if that exceeds the limit. */
const measureLongestWait = async (send: () => Promise<unknown>): Promise<number> => {
  let leastMs = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < MAX_ATTEMPTS && leastMs >= MAX_WAIT_MS; attempt++)
    leastMs = Math.min(leastMs, await measureLongestWaitDuring(send()));
  return leastMs;
};

const measureLongestWaitDuring = async (work: Promise<unknown>): Promise<number> => {
  let isFinished = false;
  let longestMs = 0;
  const finished = work.finally(() => {
    isFinished = true;
  });
  while (!isFinished) {
    const startedMs = performance.now();
    await (await fetch(new URL("/healthz", serve.url))).text();
    longestMs = Math.max(longestMs, performance.now() - startedMs);
  }
  await finished;
  return longestMs;
};

const post = async (body: string): Promise<{ status: number; text: string }> => {
  const headers = { "content-type": "application/json" };
  const response = await admin.fetch("POST", "/api/v2/users", body, { headers });
  return { status: response.status, text: await response.text() };
};

const buildObject = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"k${i}":1`).join(",")}}`;

describe("one body", () => {
  test.each([
    ["330,000 members", buildObject(330_000), `has an object with more than ${MAX_MEMBERS} members`],
    ["members far inside", `{"a":[[${buildObject(100_000)}]]}`, `has an object with more than ${MAX_MEMBERS} members`],
    ["lists 100,000 deep", `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, `nested more than ${MAX_DEPTH} deep`],
    ["objects 100,000 deep", `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`, `nested more than ${MAX_DEPTH} deep`],
    ["2 million opening brackets", `{"a":${"[".repeat(2_000_000)}`, `nested more than ${MAX_DEPTH} deep`],
    [
      "lists 30,000 deep, in a short body",
      `{"a":${"[".repeat(30_000)}${"]".repeat(30_000)}}`,
      `nested more than ${MAX_DEPTH} deep`,
    ],
    ["many lists 900 deep", `{"a":[${`${"[".repeat(900)}${"]".repeat(900)},`.repeat(2_000)}1]}`, "nested deep"],
    ["a million quotes", `{"a":"${'\\"'.repeat(1_000_000)}"}`, "Validation failed."],
    ["a million empty lists", `{"a":[${"[],".repeat(1_000_000)}1]}`, `has more than ${MAX_VALUES} values`],
    ["a long run of backslashes", `{"a":"${"\\\\".repeat(1_500_000)}"}`, "Validation failed."],
  ])("[HT-6] rejects %s with an explanation, without delaying other requests", async (_name, body, explanation) => {
    let response = { status: 0, text: "" };
    const longestMs = await measureLongestWait(async () => {
      response = await post(body);
    });
    expect(response.status).toBe(400);
    expect(response.text).toContain(explanation);
    expect(longestMs).toBeLessThan(MAX_WAIT_MS);
  });
});

test("[HT-6] names only the first of a hundred thousand invalid list entries", async () => {
  const mcp_server_ids = Array(MAX_VALUES - 10).fill("x");
  const body = { content: [{ type: "text", text: "hello" }], mcp_server_ids };
  let received = "";
  const longestMs = await measureLongestWait(async () => {
    received = await (await admin.fetch("POST", `/api/v2/chats/${crypto.randomUUID()}/messages`, body)).text();
  });
  expect(JSON.parse(received)).toMatchObject({ message: "Validation failed." });
  expect(received.length).toBeLessThan(10_000);
  expect(longestMs).toBeLessThan(MAX_WAIT_MS);
});

test("[HT-6] answers requests with a megabyte in any text field without delaying other requests", async () => {
  const longText = "x".repeat(1_000_000);
  const listTextFields = (schema: Schema): string[] =>
    Object.entries(schema.properties ?? {}).flatMap(([name, { type }]) => (type === "string" ? [name] : []));
  for (const operation of listOperations(await fetchDocument(serve.url))) {
    if (!operation.body || operation.callers[0] === "agent") continue;
    const path = Object.fromEntries(
      operation.parameters
        .filter((parameter) => parameter.in === "path")
        .map(({ name, schema }) => [name, String(createExampleValue(schema))]),
    );
    for (const field of listTextFields(operation.body)) {
      const body = { ...(createExampleValue(operation.body) as object), [field]: longText };
      let status = 0;
      const longestMs = await measureLongestWait(async () => {
        const response = await admin.fetch(operation.method, fillPath(operation, path), body);
        status = response.status;
        await response.text();
      });
      expect([operation.name, field, status < 500]).toEqual([operation.name, field, true]);
      expect(longestMs).toBeLessThan(MAX_WAIT_MS);
    }
  }
});

describe("the check before parsing", () => {
  const toBytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  const filler = "x".repeat(70_000);

  test("[HT-6] accepts short bodies without a check, and long valid ones", () => {
    expect(findCostProblem(toBytes(buildObject(1_000)))).toBeUndefined();
    const lines = Array.from({ length: 20_000 }, (_, i) => ({ level: "info", output: `line ${i} {"a":{` }));
    expect(findCostProblem(toBytes(JSON.stringify({ logs: lines })))).toBeUndefined();
    expect(
      findCostProblem(toBytes(JSON.stringify({ filler, map: JSON.parse(buildObject(MAX_MEMBERS)) }))),
    ).toBeUndefined();
  });

  test("[HT-6] ignores the content of texts, and handles escaped quotes", () => {
    const colons = ":".repeat(MAX_MEMBERS * 2);
    expect(
      findCostProblem(toBytes(JSON.stringify({ filler, colons, quotes: `"${colons}\\"${colons}` }))),
    ).toBeUndefined();
    expect(findCostProblem(toBytes(JSON.stringify({ filler, brackets: "[{".repeat(MAX_DEPTH) })))).toBeUndefined();
  });

  test("[HT-6] rejects one member or one level too many", () => {
    const overLimit = JSON.stringify({ filler, map: JSON.parse(buildObject(MAX_MEMBERS + 1)) });
    expect(findCostProblem(toBytes(overLimit))).toContain("members");
    const nestArrays = (levels: number): string =>
      `{"filler":"${filler}","a":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    expect(findCostProblem(toBytes(nestArrays(MAX_DEPTH - 1)))).toBeUndefined();
    expect(findCostProblem(toBytes(nestArrays(MAX_DEPTH)))).toContain("deep");
  });
});

test("[HT-6] rejects a deeply nested body from any client before validating it against the route's schema", async () => {
  const body = `{"x":${"[".repeat(32_000)}${"]".repeat(32_000)}}`;
  const headers = { "content-type": "application/json", "service-session-token": admin.token ?? "" };
  for (const path of ["/api/v2/users/login/passkey", "/api/v2/authcheck", "/api/v2/chats"]) {
    let text = "";
    const longestMs = await measureLongestWait(async () => {
      text = await (await fetch(new URL(path, serve.url), { method: "POST", headers, body })).text();
    });
    expect(text).toContain(`nested more than ${MAX_DEPTH} deep`);
    expect(longestMs).toBeLessThan(MAX_WAIT_MS);
  }
});

test("[HT-6] rejects a body after a thousand chunks of one byte, and accepts larger chunks", async () => {
  const sendRaw = async (body: string): Promise<string> => {
    const socket = connect(Number(serve.url.port), serve.url.hostname);
    const head = `POST /api/v2/users/login HTTP/1.1\r\nHost: ${serve.url.host}\r\nConnection: close\r\n`;
    let received = "";
    socket.on("data", (bytes) => {
      received += bytes;
    });
    // The server closes the connection while the client still sends.
    socket.on("error", () => {});
    socket.write(`${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${body}0\r\n\r\n`);
    await new Promise((resolve) => socket.once("close", resolve));
    return received;
  };
  const longestMs = await measureLongestWait(async () =>
    expect(await sendRaw("1\r\na\r\n".repeat(400_000))).toContain("small chunks"),
  );
  expect(longestMs).toBeLessThan(MAX_WAIT_MS);
  const login = JSON.stringify({ email: ADMIN.email, password: ADMIN.password });
  const chunksOfTen = login.match(/.{1,10}/g)?.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`) ?? [];
  expect(await sendRaw(chunksOfTen.join(""))).toContain("session_token");
});
