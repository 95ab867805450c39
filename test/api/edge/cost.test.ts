// Bodies that are expensive to validate: other requests are answered while they are rejected. Measured with a separate process; the limit
// is generous for a busy machine, but below the cost of accepting such bodies.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { findCostProblem, MAX_DEPTH, MAX_MEMBERS, MAX_VALUES } from "#base/json/cost.ts";
import { Client } from "#src/client.ts";
import { fetchDocument, fillPath, listOperations, type Schema } from "#test/fuzz/operations.ts";
import { exampleValue } from "#test/fuzz/values.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { type ServeProcess, startServe } from "./serve-process.ts";

const BOUND_MS = 1_000;
/** An expensive body is always expensive, a busy machine is not: the shortest of several waits counts. */
const TRIES = 3;

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
const longestWait = async (send: () => Promise<unknown>): Promise<number> => {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES && least >= BOUND_MS; tries++)
    least = Math.min(least, await longestWaitDuring(send()));
  return least;
};

const longestWaitDuring = async (work: Promise<unknown>): Promise<number> => {
  let isOver = false;
  let longest = 0;
  const finished = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const began = performance.now();
    await (await fetch(new URL("/healthz", serve.url))).text();
    longest = Math.max(longest, performance.now() - began);
  }
  await finished;
  return longest;
};

const post = async (body: string): Promise<{ status: number; text: string }> => {
  const headers = { "content-type": "application/json" };
  const response = await admin.fetch("POST", "/api/v2/users", body, { headers });
  return { status: response.status, text: await response.text() };
};

const members = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"k${i}":1`).join(",")}}`;

describe("one body", () => {
  test.each([
    ["330,000 members", members(330_000), `has an object with more than ${MAX_MEMBERS} members`],
    ["members far inside", `{"a":[[${members(100_000)}]]}`, `has an object with more than ${MAX_MEMBERS} members`],
    ["lists 100,000 deep", `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, `nested more than ${MAX_DEPTH} deep`],
    ["objects 100,000 deep", `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`, `nested more than ${MAX_DEPTH} deep`],
    ["2 million opening brackets", `{"a":${"[".repeat(2_000_000)}`, `nested more than ${MAX_DEPTH} deep`],
    [
      "lists 30,000 deep, which is short",
      `{"a":${"[".repeat(30_000)}${"]".repeat(30_000)}}`,
      `nested more than ${MAX_DEPTH} deep`,
    ],
    ["many lists 900 deep", `{"a":[${`${"[".repeat(900)}${"]".repeat(900)},`.repeat(2_000)}1]}`, "nested deep"],
    ["a million quotes", `{"a":"${'\\"'.repeat(1_000_000)}"}`, "Validation failed."],
    ["a million empty lists", `{"a":[${"[],".repeat(1_000_000)}1]}`, `has more than ${MAX_VALUES} values`],
    ["a long run of backslashes", `{"a":"${"\\\\".repeat(1_500_000)}"}`, "Validation failed."],
  ])("[HT-6] %s: refused with an explanation, and other requests do not wait long", async (_name, body, words) => {
    let answer = { status: 0, text: "" };
    const longest = await longestWait(async () => {
      answer = await post(body);
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain(words);
    expect(longest).toBeLessThan(BOUND_MS);
  });
});

test("[HT-6] the error names only the first of a hundred thousand invalid list entries", async () => {
  const mcp_server_ids = Array(MAX_VALUES - 10).fill("x");
  const body = { content: [{ type: "text", text: "hello" }], mcp_server_ids };
  let answer = "";
  const longest = await longestWait(async () => {
    answer = await (await admin.fetch("POST", `/api/v2/chats/${crypto.randomUUID()}/messages`, body)).text();
  });
  expect(JSON.parse(answer)).toMatchObject({ message: "Validation failed." });
  expect(answer.length).toBeLessThan(10_000);
  expect(longest).toBeLessThan(BOUND_MS);
});

test("[HT-6] requests with a megabyte in each text field of every route are answered, and other requests do not wait long", async () => {
  const longText = "x".repeat(1_000_000);
  const texts = (schema: Schema): string[] =>
    Object.entries(schema.properties ?? {}).flatMap(([name, of]) => (of.type === "string" ? [name] : []));
  for (const operation of listOperations(await fetchDocument(serve.url))) {
    if (!operation.body || operation.callers[0] === "agent") continue;
    const path = Object.fromEntries(
      operation.parameters
        .filter((one) => one.in === "path")
        .map(({ name, schema }) => [name, String(exampleValue(schema))]),
    );
    for (const field of texts(operation.body)) {
      const body = { ...(exampleValue(operation.body) as object), [field]: longText };
      let status = 0;
      const longest = await longestWait(async () => {
        const response = await admin.fetch(operation.method, fillPath(operation, path), body);
        status = response.status;
        await response.text();
      });
      expect([operation.name, field, status < 500]).toEqual([operation.name, field, true]);
      expect(longest).toBeLessThan(BOUND_MS);
    }
  }
});

describe("the check before parsing", () => {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  const filler = "x".repeat(70_000);

  test("[HT-6] short bodies are not checked, and long valid ones pass", () => {
    expect(findCostProblem(bytes(members(1_000)))).toBeUndefined();
    const lines = Array.from({ length: 20_000 }, (_, i) => ({ level: "info", output: `line ${i} {"a":{` }));
    expect(findCostProblem(bytes(JSON.stringify({ logs: lines })))).toBeUndefined();
    expect(findCostProblem(bytes(JSON.stringify({ filler, map: JSON.parse(members(MAX_MEMBERS)) })))).toBeUndefined();
  });

  test("[HT-6] text content is not counted, and escaped quotes do not end strings", () => {
    const colons = ":".repeat(MAX_MEMBERS * 2);
    expect(
      findCostProblem(bytes(JSON.stringify({ filler, colons, quotes: `"${colons}\\"${colons}` }))),
    ).toBeUndefined();
    expect(findCostProblem(bytes(JSON.stringify({ filler, brackets: "[{".repeat(MAX_DEPTH) })))).toBeUndefined();
  });

  test("[HT-6] one member or one level too many is refused", () => {
    const overLimit = JSON.stringify({ filler, map: JSON.parse(members(MAX_MEMBERS + 1)) });
    expect(findCostProblem(bytes(overLimit))).toContain("members");
    const nestArrays = (levels: number): string =>
      `{"filler":"${filler}","a":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    expect(findCostProblem(bytes(nestArrays(MAX_DEPTH - 1)))).toBeUndefined();
    expect(findCostProblem(bytes(nestArrays(MAX_DEPTH)))).toContain("deep");
  });
});

test("[HT-6] a deeply nested body is refused, from anonymous clients and members, before it is compared with what the route takes", async () => {
  const body = `{"x":${"[".repeat(32_000)}${"]".repeat(32_000)}}`;
  const headers = { "content-type": "application/json", "service-session-token": admin.token ?? "" };
  for (const path of ["/api/v2/users/login/passkey", "/api/v2/authcheck", "/api/v2/chats"]) {
    let text = "";
    const longest = await longestWait(async () => {
      text = await (await fetch(new URL(path, serve.url), { method: "POST", headers, body })).text();
    });
    expect(text).toContain(`nested more than ${MAX_DEPTH} deep`);
    expect(longest).toBeLessThan(BOUND_MS);
  }
});

test("[HT-6] a body in chunks of one byte is refused after a thousand of them, and one in larger chunks is accepted", async () => {
  const sendRaw = async (body: string): Promise<string> => {
    const socket = connect(Number(serve.url.port), serve.url.hostname);
    const head = `POST /api/v2/users/login HTTP/1.1\r\nHost: ${serve.url.host}\r\nConnection: close\r\n`;
    let answer = "";
    socket.on("data", (bytes) => {
      answer += bytes;
    });
    // A refused body is cut off while it is sent.
    socket.on("error", () => {});
    socket.write(`${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${body}0\r\n\r\n`);
    await new Promise((resolve) => socket.once("close", resolve));
    return answer;
  };
  const wait = await longestWait(async () =>
    expect(await sendRaw("1\r\na\r\n".repeat(400_000))).toContain("small chunks"),
  );
  expect(wait).toBeLessThan(BOUND_MS);
  const login = JSON.stringify({ email: ADMIN.email, password: ADMIN.password });
  const inTens = login.match(/.{1,10}/g)?.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`) ?? [];
  expect(await sendRaw(inTens.join(""))).toContain("session_token");
});
