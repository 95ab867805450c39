// Values that every route parses in the same way: integers, times, words, names, images.
import { afterAll, describe, expect, test } from "bun:test";
import type { Generic } from "#schema/generic.ts";
import { toIcon, toLine } from "#schema/text.ts";
import { Client } from "#src/client.ts";
import { fetchDocument, fillPath, listOperations, type Operation, type Schema } from "#test/fuzz/operations.ts";
import { createExampleValue } from "#test/fuzz/values.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";

const server = await startTestServer();
const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
const operations = listOperations(await fetchDocument(server.url));
afterAll(() => server[Symbol.asyncDispose]());

const PATH: Record<string, string> = { user: "me", organization: "default" };
const userOperations = operations.filter(({ callers }) => callers[0] === "user");

const buildPath = (operation: Operation, query: Record<string, string> = {}, path: Record<string, string> = {}) => {
  const needed = operation.parameters
    .filter((parameter) => parameter.in === "query" && parameter.required && !(parameter.name in query))
    .map(({ name, schema }) => [name, String(createExampleValue(schema))]);
  const filled = operation.parameters
    .filter((parameter) => parameter.in === "path")
    .map(({ name, schema }) => [name, PATH[name] ?? String(createExampleValue(schema))]);
  return fillPath(operation, { ...Object.fromEntries(filled), ...path }, { ...Object.fromEntries(needed), ...query });
};

const send = async (method: string, path: string, body?: unknown) => {
  const response = await admin.fetch(method, path, body);
  const text = await response.text();
  const responseBody = (text.startsWith("{") ? JSON.parse(text) : {}) as Generic;
  const fields = (responseBody.validations ?? []).map(({ field }) => field);
  return { ...responseBody, status: response.status, fields };
};

const isInteger = ({ type, anyOf }: Schema): boolean => type === "integer" || (anyOf ?? []).some(isInteger);

describe("integers in queries", () => {
  const rows = userOperations.flatMap((operation) =>
    operation.parameters
      .filter((parameter) => parameter.in === "query" && isInteger(parameter.schema))
      .map(({ name }) => [`${operation.name} ${name}`, operation, name] as const),
  );

  test.each(rows)(
    "[HT-28] %s accepts only digits, not everything that JavaScript reads as a number",
    async (_name, operation, name) => {
      for (const invalid of ["99999999999999999999", "1e3", "0x10", "1.0", " 1", "+1", "Infinity", "-"]) {
        const { status, fields } = await send(operation.method, buildPath(operation, { [name]: invalid }));
        expect({ invalid, status, fields }).toEqual({ invalid, status: 400, fields: [name] });
      }
    },
  );

  test("[HT-28] such queries exist", () => expect(rows.length).toBeGreaterThan(20));
});

describe("times", () => {
  test.each([
    "2030-01-31",
    "2030-01-31T09:30",
    "2030-01-31T09:30:00",
    "2030-02-30T09:30:00Z",
    "2030-13-01T09:30:00Z",
    "2030-01-31 09:30:00Z",
    "2030-01-31T24:00:00Z",
    '"2030-01-31T09:30:00Z"',
    "Thu, 31 Jan 2030 09:30:00 GMT",
    "01/31/2030",
  ])("[HT-28] %s is not a time", async (deadline) => {
    const path = "/api/v2/workspaces/6ba7b810-9dad-41d1-80b4-00c04fd430c8/extend";
    const { status, validations } = await send("PUT", path, { deadline });
    const detail = "must be a time as in RFC 3339, such as 2030-01-31T09:30:00Z";
    expect({ status, validations }).toEqual({ status: 400, validations: [{ field: "deadline", detail }] });
  });

  test.each([{}, { deadline: null }])("[HT-42] %j has no deadline", async (body) => {
    const path = "/api/v2/workspaces/6ba7b810-9dad-41d1-80b4-00c04fd430c8/extend";
    const { status, validations } = await send("PUT", path, body);
    expect([status, validations?.map(({ field }) => field)]).toEqual([400, ["deadline"]]);
  });

  test.each(["2030-01-31T09:30:00Z", "2030-01-31T09:30:00.123456789+05:30", "2028-02-29t09:30:00z"])(
    "[HT-28] %s is a valid time",
    async (deadline) => {
      const path = "/api/v2/workspaces/6ba7b810-9dad-41d1-80b4-00c04fd430c8/extend";
      expect((await send("PUT", path, { deadline })).status).toBe(404);
    },
  );
});

describe("values of a fixed set", () => {
  type FixedSet = { operation: Operation; name: string; values: unknown[] };
  const fixedSets = operations.flatMap((operation): FixedSet[] =>
    Object.entries(operation.body?.properties ?? {}).flatMap(([name, { enum: values }]) =>
      values && operation.callers[0] === "user" ? [{ operation, name, values }] : [],
    ),
  );

  test.each(fixedSets.map((fixedSet) => [`${fixedSet.operation.name} ${fixedSet.name}`, fixedSet] as const))(
    "[HT-28] %s: the error for an unknown value lists the allowed ones",
    async (_name, { operation, name, values }) => {
      const body = { ...(createExampleValue(operation.body as Schema) as object), [name]: "no such word" };
      const { status, validations } = await send(operation.method, buildPath(operation), body);
      const detail = validations?.find(({ field }) => field === name)?.detail;
      expect({ status, detail }).toEqual({
        status: 400,
        detail: `must be ${values.length > 1 ? "one of " : ""}${values.join(", ")}`,
      });
    },
  );

  test("[HT-28] such members exist", () => expect(fixedSets.length).toBeGreaterThan(3));
});

test.each(["usage", "no-such-thing", "global_settings"])(
  "[HT-14] /%s at the end of a path is an unknown route; earlier in the path it is a malformed ID",
  async (word) => {
    for (const noun of ["workspaces", "templates", "chats", "workspacebuilds", "templateversions", "workspaceagents"]) {
      const { status, message } = await send("GET", `/api/v2/${noun}/${word}`);
      expect({ noun, status, message }).toEqual({ noun, status: 404, message: "Route not found." });
      expect((await send("GET", `/api/v2/${noun}/6ba7b810-9dad`)).status).toBe(400);
    }
    expect((await send("GET", `/api/v2/workspaces/${word}/builds`)).status).toBe(400);
    // Anonymous callers do not learn which routes exist.
    expect((await admin.withToken(undefined).fetch("GET", `/api/v2/workspaces/${word}`)).status).toBe(401);
  },
);

describe("names and images", () => {
  /** Body members that are a one-line name or an image URL. */
  const listMembers = (pattern: RegExp) =>
    userOperations.flatMap((operation) =>
      Object.entries(operation.body?.properties ?? {}).flatMap(([name, schema]) =>
        pattern.test(name) && schema.type === "string" && !schema.enum ? [{ operation, name }] : [],
      ),
    );
  const toRows = (pattern: RegExp) =>
    listMembers(pattern).map((member) => [`${member.operation.name} ${member.name}`, member] as const);
  const buildBody = ({ body }: Operation, overrides: object) => {
    const { properties = {}, required = [] } = body as Schema;
    const needed = Object.fromEntries(Object.entries(properties).filter(([name]) => required.includes(name)));
    // Keys that follow a pattern are covered by another rule.
    const isRecord = (schema: unknown): boolean => {
      const { type, properties } = schema as { type?: string; properties?: object };
      return type === "object" && properties === undefined;
    };
    const records = Object.entries(needed).flatMap(([name, schema]) => (isRecord(schema) ? [name] : []));
    const empty = Object.fromEntries(records.map((name) => [name, {}]));
    return { ...(createExampleValue({ ...body, properties: needed }) as object), ...empty, ...overrides };
  };

  test.each(toRows(/^(name|username|display_name|title|token_name|slug)$/))(
    "[HT-26] %s rejects control characters, invisible characters and direction marks",
    async (_name, { operation, name }) => {
      for (const invalid of [
        "a\u0000b",
        "a\u001b[31mb",
        "a\nb",
        "a\u202eb",
        "a\u2066b",
        "a\u200fb",
        "a\u0085b",
        "a\u200bb",
        "a\ufff9b",
        "a\u{e0041}b",
      ]) {
        const { status, fields } = await send(
          operation.method,
          buildPath(operation),
          buildBody(operation, { [name]: invalid }),
        );
        expect({ invalid, status, fields }).toEqual({ invalid, status: 400, fields: expect.arrayContaining([name]) });
      }
    },
  );

  test.each(toRows(/^(model|deprecation_message|message|description)$/))(
    "[HT-26] %s rejects control and invisible characters, also in longer texts",
    async (_name, { operation, name }) => {
      for (const invalid of ["a\u0000b", "a\u001b[31mb", "a\u202eb", "a\u200bb"]) {
        const { status, fields } = await send(
          operation.method,
          buildPath(operation),
          buildBody(operation, { [name]: invalid }),
        );
        expect({ invalid, status, fields }).toEqual({ invalid, status: 400, fields: expect.arrayContaining([name]) });
      }
    },
  );

  test("[HT-26] accepts people's names in any script", async () => {
    for (const name of ["Zoë Müller", "山田 太郎", "عمر", "👩‍💻 O'Neil-Smith", ""]) {
      const { status } = await send("PUT", "/api/v2/users/me/profile", { username: ADMIN.username, name });
      expect({ name, status }).toEqual({ name, status: 200 });
    }
  });

  test("[HT-26] says that a name is too long", async () => {
    const { status, validations } = await send("PUT", "/api/v2/users/me/profile", {
      username: ADMIN.username,
      name: "n".repeat(10_000),
    });
    const detail = expect.stringMatching(/^must have at most \d+ characters$/);
    expect({ status, validations }).toEqual({ status: 400, validations: [{ field: "name", detail }] });
  });

  test.each(toRows(/^icon$/))("[HT-27] %s accepts only image URLs", async (_name, { operation, name }) => {
    const problems = [
      "javascript:alert(1)",
      "/api/v2/users/logout",
      "//evil.example/x",
      "data:text/html,x",
      "/../x",
      "x y",
      "http://[::1",
      "https://user:secret@example.com/x.png",
      "https://user@example.com",
    ];
    for (const icon of problems) {
      const { status, fields } = await send(
        operation.method,
        buildPath(operation),
        buildBody(operation, { [name]: icon }),
      );
      expect({ icon, status, fields }).toEqual({ icon, status: 400, fields: expect.arrayContaining([name]) });
    }
    for (const icon of [
      "",
      "https://example.com/a.png?b=c",
      "http://[::1]:8080/@scope/a.png",
      "/emojis/1f310.png",
      "/icon/docker.svg",
      "data:image/png;base64,AA==",
    ]) {
      const { fields } = await send(operation.method, buildPath(operation), buildBody(operation, { [name]: icon }));
      expect(fields).not.toContain(name);
    }
  });

  test("[HT-26] sanitizes values whose sender cannot correct them", () => {
    expect(toLine("\u202edesrever\u0000 \r\n twice ")).toBe("desrever    twice");
    expect([toIcon("javascript:alert(1)"), toIcon("/emojis/1f310.png")]).toEqual(["", "/emojis/1f310.png"]);
  });
});

test("[HT-30] __proto__ is not a member name, even where any name is allowed", async () => {
  const body = '{"name":"eu","tags":{"__proto__":{"polluted":1}}}';
  const headers = { "content-type": "application/json" };
  const path = "/api/v2/organizations/default/provisionerkeys";
  const response = await admin.fetch("POST", path, body, { headers });
  const { validations } = (await response.json()) as Generic;
  expect([response.status, validations?.[0]?.field]).toEqual([400, "tags.__proto__"]);
});

test("[HT-16] the export of the audit log declares its content types", async () => {
  const operation = operations.find(({ name }) => name === "GET /api/v2/audit/export");
  const declared = Object.keys(operation?.described.responses["200"]?.content ?? {});
  const sent = await admin.fetch("GET", "/api/v2/audit/export");
  await sent.text();
  expect(declared).toEqual(["application/x-ndjson", "text/csv"]);
  expect(sent.headers.get("content-type")).toStartWith("application/x-ndjson");
});
