// Invalid input on every route, generated from the OpenAPI document: wrong callers, wrong IDs, missing and wrong fields. Each request gets
// its status and the generic body, and writes nothing. New routes in the document are covered automatically.
import { afterAll, describe, expect, test } from "bun:test";
import type { Generic } from "#schema/generic.ts";
import { Client } from "#src/client.ts";
import { fetchDocument, fillPath, listOperations, type Operation, type Schema } from "#test/fuzz/operations.ts";
import { createExampleValue, makeInvalidText, makeWrongType } from "#test/fuzz/values.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { seedAgent, seedUser, supersedeAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { isWrittenByRequests, openStoredData } from "#test/support/stored.ts";
import { makeKey } from "#test/support/worker.ts";
import { formatChunk, formatHead, readAnswer } from "./raw-http.ts";
import { findExceptionStatus } from "./table-exceptions.ts";

const DAY_MS = 86_400_000;
const clock = new ManualClock();
const server = await startTestServer({ clock });
const expired = (await seedUser(server)).token;
clock.advance(DAY_MS + 1);
const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
const owner = admin.token as string;
const agent = (await seedAgent(server)).agent_token;
const oldAgent = await seedAgent(server);
await supersedeAgent(server, oldAgent);
const revoked = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
await revoked.post("/api/v2/users/logout");
const suspended = await seedUser(server);
await admin.put(`/api/v2/users/${suspended.user_id}/status/suspend`);
const operations = listOperations(await fetchDocument(server.url));
const stored = await openStoredData(server.directory);

afterAll(async () => {
  await stored[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const toRows = (matches: (operation: Operation) => boolean): [string, Operation][] =>
  operations.filter(matches).map((operation) => [operation.name, operation]);

const isSecured = (operation: Operation): boolean => operation.callers.length > 0;
const TOKENS = { user: owner, agent, worker: (await makeKey(admin)).key };
const getValidToken = ({ callers: [caller] }: Operation): string | undefined => caller && TOKENS[caller];

const tables = (await stored.tables()).filter(
  (name) => isWrittenByRequests(name) && !/^(audit_logs|sqlite_)/.test(name),
);
let lastState = { version: "", digest: 0n };
/** Changes whenever anything changes, except the audit log, which records rejections after the response (rule AU-18). */
const computeDigest = async (): Promise<bigint> => {
  const version = await stored.version();
  if (version !== lastState.version) {
    const rows: string[] = [];
    for (const name of tables) rows.push(JSON.stringify(await stored.rows(`select * from "${name}"`)));
    lastState = { version, digest: BigInt(Bun.hash(rows.join("\n"))) };
  }
  return lastState.digest;
};

type Call = {
  token?: string | undefined;
  path?: Record<string, string>;
  query?: Record<string, string>;
  body?: unknown;
};

const KNOWN_NAMES: Record<string, string> = { user: "me", organization: "default", buildnumber: "1" };

/** Returns path parameters of existing objects, where known. */
const buildPath = (operation: Operation): Record<string, string> =>
  Object.fromEntries(
    operation.parameters
      .filter((parameter) => parameter.in === "path")
      .map(({ name, schema }) => [name, KNOWN_NAMES[name] ?? String(createExampleValue(schema) || "none")]),
  );

const buildQuery = (operation: Operation): Record<string, string> =>
  Object.fromEntries(
    operation.parameters
      .filter((parameter) => parameter.in === "query" && parameter.required)
      .map(({ name, schema, example }) => [name, String(example ?? createExampleValue(schema))]),
  );

const buildBody = ({ body }: Operation): Record<string, unknown> | undefined =>
  body && (createExampleValue({ ...body, properties: pickRequired(body) }) as Record<string, unknown>);

const pickRequired = ({ properties = {}, required = [] }: Schema): Record<string, Schema> =>
  Object.fromEntries(Object.entries(properties).filter(([name]) => required.includes(name)));

const send = async (operation: Operation, call: Call) => {
  const path = fillPath(operation, call.path ?? buildPath(operation), call.query ?? buildQuery(operation));
  const body = "body" in call ? call.body : buildBody(operation);
  const response = await new Client(server.url, call.token).fetch(operation.method, path, body);
  return { status: response.status, headers: response.headers, text: await response.text() };
};

/** The validator's own wording, and terms that mean nothing to users. */
const JARGON = /\b(Expected|union|schema|pattern|regex|undefined|boolean|integer)\b|[\\^$]|\(\?/;

/** Sends a request that must be rejected; the response must have the generic shape, and nothing may have been written. */
const sendInvalid = async (operation: Operation, call: Call): Promise<{ status: number; body: Generic }> => {
  const before = await computeDigest();
  const { status, headers, text } = await send(operation, call);
  expect(status, text).toBeGreaterThanOrEqual(400);
  expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  const body = JSON.parse(text) as Generic;
  expect(Object.keys(body).filter((key) => !["message", "kind", "detail", "validations"].includes(key))).toEqual([]);
  expect(body.message).toMatch(/^\S.*[.]$/);
  // Messages are written for people (rule HT-42).
  expect((body.validations ?? []).filter(({ detail }) => JARGON.test(detail))).toEqual([]);
  expect(await computeDigest()).toEqual(before);
  return { status, body };
};

const listInvalidFields = (body: Generic): string[] => (body.validations ?? []).map(({ field }) => field);

describe("authentication", () => {
  const invalidCallers: [string, string | undefined][] = [
    ["no token", undefined],
    ["text that is not a token", "not-a-token"],
    ["an overlong token", "x".repeat(5000)],
    ["an unknown key", "aaaaaaaaaa-bbbbbbbbbbbbbbbbbbbbbb"],
    ["a wrong secret", `${owner.slice(0, -1)}${owner.endsWith("x") ? "y" : "x"}`],
    ["an expired key", expired],
    ["a revoked key", revoked.token],
    ["a suspended user", suspended.token],
    ["an unknown agent", "6ba7b810-9dad-41d1-80b4-00c04fd430c8"],
    ["an agent of an older build", oldAgent.agent_token],
  ];

  const REVOKED_CALLERS = new Set(["an unknown key", "a revoked key", "a suspended user"]);

  test.each(toRows(isSecured))(
    "[HT-13] %s: returns 401 to unauthenticated callers, with or without a body",
    async (_name, operation) => {
      for (const [caller, token] of invalidCallers) {
        for (const call of [{ token }, { token, body: operation.body && {} }]) {
          const { status, body } = await sendInvalid(operation, call);
          expect([caller, status]).toEqual([caller, 401]);
          expect(body.validations).toBeUndefined();
          // A browser keeps a person's drafts when the key expires, but not when it is revoked.
          if (body.kind !== undefined) expect([REVOKED_CALLERS.has(caller), body.kind]).toEqual([true, "revoked"]);
        }
      }
    },
  );

  test.each(toRows((operation) => isSecured(operation) && operation.callers.length === 1))(
    "[HT-13] %s: returns 401 for a token of the wrong kind",
    async (_name, operation) => {
      const token = operation.callers[0] === "agent" ? owner : agent;
      expect(await sendInvalid(operation, { token })).toHaveProperty("status", 401);
    },
  );

  test("[HT-13] only these routes are open to anonymous callers", () => {
    expect(operations.filter((operation) => !isSecured(operation)).map(({ name }) => name)).toEqual([
      "GET /healthz",
      "GET /readyz",
      "GET /bin/{file}",
      "GET /init-script/{os}/{arch}",
      "GET /derp",
      "GET /derp/latency-check",
      "GET /api/v2/buildinfo",
      "GET /api/v2/updatecheck",
      "GET /api/v2/appearance",
      "POST /api/v2/workspaceagents/cloud-a-instance-identity",
      "POST /api/v2/workspaceagents/aws-instance-identity",
      "POST /api/v2/workspaceagents/cloud-b-instance-identity",
      "POST /api/v2/workspaceagents/azure-instance-identity",
      "POST /api/v2/workspaceagents/cloud-c-instance-identity",
      "POST /api/v2/workspaceagents/google-instance-identity",
      "GET /api/v2/init-script/{os}/{arch}",
      "POST /api/v2/users/login",
      "POST /api/v2/users/login/second-factor",
      "POST /api/v2/users/login/passkey/start",
      "POST /api/v2/users/login/passkey",
      "GET /api/v2/users/first",
      "POST /api/v2/users/first",
      "GET /api/v2/users/authmethods",
      "POST /api/v2/users/validate-password",
      "GET /api/v2/users/oidc/callback",
      "GET /api/v2/users/oidc/{provider}/start",
      "GET /api/v2/users/oidc/{provider}/callback",
      "POST /api/v2/invitations/look",
      "POST /api/v2/invitations/accept",
      "POST /api/v2/invitations/accept/passkey/start",
      "POST /api/v2/invitations/accept/oidc",
      "GET /api/v2/templates/schema",
      "POST /api/v2/repositories/prebuilds/{prebuild}/push",
    ]);
  });
});

const listIds = (operation: Operation) => operation.parameters.filter((parameter) => parameter.in === "path");
const UNKNOWN_ID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";

describe("IDs in the path", () => {
  const hasIds = (operation: Operation): boolean => listIds(operation).length > 0;

  test.each(toRows(hasIds))(
    "[HT-14] %s: returns 400 for a malformed ID and names it, and 404 for an unknown name",
    async (_name, operation) => {
      for (const { name, schema } of listIds(operation)) {
        const invalidText = makeInvalidText(schema);
        const path = { ...buildPath(operation), [name]: invalidText ?? "no-such-thing" };
        const { status, body } = await sendInvalid(operation, { token: getValidToken(operation), path });
        const expected = findExceptionStatus(operation.name, `wrong ${name}`) ?? (invalidText ? 400 : 404);
        expect([name, status]).toEqual([name, expected]);
        if (status === 400) expect(listInvalidFields(body)).toContain(name);
      }
    },
  );

  test.each(toRows(hasIds))(
    "[HT-14] %s: returns the same 404 for a missing object as for a hidden one",
    async (_name, operation) => {
      for (const { name, schema } of listIds(operation)) {
        if (schema.enum) continue;
        const expected = findExceptionStatus(operation.name, `unknown ${name}`) ?? 404;
        if (expected < 400) continue;
        const path = { ...buildPath(operation), [name]: UNKNOWN_ID };
        const { status, body } = await sendInvalid(operation, { token: getValidToken(operation), path });
        expect([name, status]).toEqual([name, expected]);
        if (status === 404) {
          expect(body).toEqual({ message: "Resource not found or you do not have access to this resource." });
        }
      }
    },
  );
});

describe("fields", () => {
  test.each(toRows(({ body }) => body !== undefined))(
    "[HT-15] %s: returns 400 for a missing field or a wrong type, and names the field",
    async (_name, operation) => {
      const token = getValidToken(operation);
      const validBody = buildBody(operation) as Record<string, unknown>;
      for (const [field, schema] of Object.entries(operation.body?.properties ?? {})) {
        const wrongValue = makeWrongType(schema);
        const bodies = [
          ...(operation.body?.required?.includes(field) ? [{ ...validBody, [field]: undefined }] : []),
          ...(wrongValue === undefined ? [] : [{ ...validBody, [field]: wrongValue }]),
          ...(schema.maxLength === undefined ? [] : [{ ...validBody, [field]: "x".repeat(schema.maxLength + 1) }]),
          ...(schema.enum ? [{ ...validBody, [field]: "no such word" }] : []),
        ];
        for (const invalidBody of bodies) {
          const { status, body } = await sendInvalid(operation, { token, body: invalidBody });
          expect([field, invalidBody[field], status]).toEqual([field, invalidBody[field], 400]);
          expect(listInvalidFields(body).map((name) => name.split(".")[0])).toContain(field);
        }
      }
    },
  );

  test.each(toRows(({ body }) => body !== undefined))(
    "[HT-15] %s: returns 400 for a body that is not a JSON object, and 415 for another content type",
    async (_name, operation) => {
      const token = getValidToken(operation);
      for (const body of [[], null, 1, "[]", '{"a":']) {
        const { status } = await sendInvalidRaw(
          operation,
          token,
          typeof body === "string" ? body : JSON.stringify(body),
          "application/json",
        );
        expect([body, status]).toEqual([body, 400]);
      }
      expect(await sendInvalidRaw(operation, token, "{}", "text/plain")).toHaveProperty("status", 415);
    },
  );

  const sendInvalidRaw = async (
    operation: Operation,
    token: string | undefined,
    body: string,
    type: string,
    path = buildPath(operation),
  ) => {
    const before = await computeDigest();
    const response = await new Client(server.url, token).fetch(
      operation.method,
      fillPath(operation, path, buildQuery(operation)),
      body,
      { headers: { "content-type": type } },
    );
    const responseBody = (await response.json()) as Generic;
    expect(responseBody).toHaveProperty("message");
    expect(await computeDigest()).toEqual(before);
    return { status: response.status, message: responseBody.message };
  };

  const requiresBody = ({ described }: Operation): boolean => described.requestBody?.required === true;

  test.each(toRows((operation) => operation.body !== undefined && requiresBody(operation)))(
    "[HT-24] %s: returns 400 for a missing required body, and says so",
    async (_name, operation) => {
      const token = getValidToken(operation);
      expect((await sendInvalid(operation, { token, body: undefined })).body.message).toBe(
        "The request body is missing.",
      );
      const { status, message } = await sendInvalidRaw(operation, token, "", "application/json");
      expect([status, message]).toEqual([400, "The request body is missing."]);
    },
  );

  const isWrite = ({ method }: Operation): boolean => method !== "GET";
  const buildUnknownPath = (operation: Operation) =>
    Object.fromEntries(
      listIds(operation).map(({ name, schema }) => [
        name,
        schema.enum ? (buildPath(operation)[name] as string) : UNKNOWN_ID,
      ]),
    );

  test.each(toRows((operation) => isWrite(operation) && !requiresBody(operation) && listIds(operation).length > 0))(
    "[HT-24] %s: accepts a missing optional body with any content type",
    async (_name, operation) => {
      const token = getValidToken(operation);
      const path = buildUnknownPath(operation);
      const expected = await sendInvalid(operation, { token, path, body: operation.body && {} });
      expect(expected.body.message).not.toMatch(/request body/);
      for (const type of ["application/json", "application/x-www-form-urlencoded"]) {
        const response = await sendInvalidRaw(operation, token, "", type, path);
        expect([type, response.status, response.message]).toEqual([type, expected.status, expected.body.message]);
      }
    },
  );

  const listQueryParameters = (operation: Operation) =>
    operation.parameters.filter((parameter) => parameter.in === "query");

  test.each(toRows((operation) => listQueryParameters(operation).length > 0))(
    "[HT-15] %s: returns 400 for a missing or malformed query parameter, and names it",
    async (_name, operation) => {
      const token = getValidToken(operation);
      const validQuery = buildQuery(operation);
      for (const { name, required, schema } of listQueryParameters(operation)) {
        const invalidText = makeInvalidText(schema);
        if (invalidText !== undefined) {
          const { status, body } = await sendInvalid(operation, {
            token,
            query: { ...validQuery, [name]: invalidText },
          });
          expect([name, invalidText, status]).toEqual([name, invalidText, 400]);
          expect(listInvalidFields(body)).toContain(name);
        }
        if (!required) continue;
        const { [name]: _, ...rest } = validQuery;
        const { status, body } = await sendInvalid(operation, { token, query: rest });
        expect([name, status]).toEqual([name, 400]);
        expect(listInvalidFields(body)).toContain(name);
      }
    },
  );
});

/** Routes that read the body only after they have found its recipient; agents/upload.test.ts and others cover their limits. */
const LATE_READERS = new Set([
  "POST /api/v2/workspaceagents/{workspaceagent}/files",
  "POST /api/v2/repositories/prebuilds/{prebuild}/push",
]);

describe("the size of bodies", () => {
  test.each(toRows(({ bodyLimit }) => bodyLimit !== undefined))(
    "[HT-7] %s: returns 413 with the specified message for a body one byte over its limit",
    async (_name, operation) => {
      const limit = operation.bodyLimit as number;
      const before = await computeDigest();
      const path = fillPath(operation, buildPath(operation), buildQuery(operation));
      const headers = {
        "Content-Type": Object.keys(operation.described.requestBody?.content ?? {})[0] as string,
        "Service-Session-Token": getValidToken(operation) ?? "none",
      };
      using declared = new RawConnection(server.url);
      declared.send(formatHead(operation.method, path, { ...headers, "Content-Length": limit + 1 }));
      using streamed = new RawConnection(server.url);
      streamed.send(formatHead(operation.method, path, { ...headers, "Transfer-Encoding": "chunked" }));
      // The body exceeds the limit and never ends, so the response must not wait for the end.
      const part = Buffer.from(formatChunk(" ".repeat(65_536)));
      for (let sent = 0; sent <= limit + 65_536; sent += 65_536) streamed.send(part);
      const readsLate = LATE_READERS.has(operation.name);
      if (readsLate) expect((await readAnswer(streamed))?.status).toBe(404);
      for (const response of [await readAnswer(declared), ...(readsLate ? [] : [await readAnswer(streamed)])]) {
        expect(response?.status).toBe(413);
        expect(JSON.parse(response?.text as string)).toEqual({
          message: "Request body too large.",
          detail: `Maximum request body size is ${limit} bytes.`,
        });
      }
      expect(await computeDigest()).toEqual(before);
    },
  );
});
