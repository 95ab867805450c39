// How every body handles members that a genuine client cannot omit (null, the zero UUID) and members that its schema forbids: a table over
// all bodies of the OpenAPI document, at any depth.
import { afterAll, describe, expect, test } from "bun:test";
import { NIL_UUID } from "#base/ids.ts";
import type { Generic } from "#schema/generic.ts";
import { Client } from "#src/client.ts";
import { fetchDocument, fillPath, listOperations, type Operation, type Schema } from "#test/fuzz/operations.ts";
import { exampleValue } from "#test/fuzz/values.ts";
import { seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";

const server = await startTestServer();
const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
const agent = admin.withToken((await seedAgent(server)).agent_token);
const operations = listOperations(await fetchDocument(server.url));
afterAll(() => server[Symbol.asyncDispose]());

/** One object of a body: its path (a number is a list item), its schema, and a body that contains it. */
type Spot = { operation: Operation; way: (string | number)[]; schema: Schema };

const listSpots = (operation: Operation, schema: Schema | undefined, way: (string | number)[] = []): Spot[] => {
  if (!schema) return [];
  const ownSchemas = schema.type === "object" ? [{ operation, way, schema }] : [];
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, of]) =>
    listSpots(operation, of, [...way, name]),
  );
  const variants = (schema.anyOf ?? []).flatMap((one) => listSpots(operation, one, way));
  return [...ownSchemas, ...members, ...variants, ...listSpots(operation, schema.items, [...way, 0])];
};

const spots = operations.flatMap((operation) => listSpots(operation, operation.body));
const table = <T extends { operation: Operation; way: (string | number)[] }>(rows: T[], name: (row: T) => string) =>
  rows.map((row) => [`${row.operation.name} ${[...row.way, name(row)].join(".")}`, row] as const);

/** Returns valid values with all required members and those on the path; other optional ones are omitted. */
const buildValue = (schema: Schema, [step, ...rest]: (string | number)[]): unknown => {
  if (schema.anyOf) {
    const on = schema.anyOf.find((one) => (typeof step === "number" ? one.items : step && one.properties?.[step]));
    return buildValue(on ?? (schema.anyOf[0] as Schema), step === undefined ? [] : [step, ...rest]);
  }
  if (schema.items) return typeof step === "number" ? [buildValue(schema.items, rest)] : buildNonNull(schema);
  if (schema.type !== "object") return buildNonNull(schema);
  const names = Object.keys(schema.properties ?? {}).filter((name) => schema.required?.includes(name) || name === step);
  return Object.fromEntries(
    names.map((name) => [name, buildValue(schema.properties?.[name] as Schema, name === step ? rest : [])]),
  );
};
const buildNonNull = (schema: Schema): unknown => exampleValue({ ...schema, nullable: false });

const makeBody = (
  { operation, way }: Pick<Spot, "operation" | "way">,
  change: (at: Record<string, unknown>) => void,
) => {
  const body = buildValue(operation.body as Schema, [...way]);
  change(way.reduce((at, step) => (at as Record<string, unknown>)[step], body) as Record<string, unknown>);
  return body;
};

const send = async (
  operation: Operation,
  body: unknown,
): Promise<{ status: number; fields: string[]; body: Generic }> => {
  const path = Object.fromEntries(
    operation.parameters
      .filter((one) => one.in === "path")
      .map(({ name, schema }) => [name, PATH[name] ?? String(exampleValue(schema))]),
  );
  const client =
    operation.callers[0] === "agent" ? agent : operation.callers.length === 0 ? admin.withToken(undefined) : admin;
  const response = await client.fetch(operation.method, fillPath(operation, path), body);
  const text = await response.text();
  const answer = (text.startsWith("{") ? JSON.parse(text) : {}) as Generic;
  return { status: response.status, fields: (answer.validations ?? []).map(({ field }) => field), body: answer };
};
const PATH: Record<string, string> = { user: "me", organization: "default" };

type Member = { operation: Operation; way: (string | number)[]; name: string; schema: Schema };
const optional: Member[] = spots.flatMap(({ operation, way, schema }) =>
  Object.entries(schema.properties ?? {})
    .filter(([name]) => !schema.required?.includes(name))
    .map(([name, of]) => ({ operation, way, name, schema: of })),
);

const isRefusal = ({ status, fields }: { status: number; fields: string[] }, at: string): boolean =>
  status === 400 && fields.some((field) => field === at || field.startsWith(`${at}.`));

describe("null is treated as omitted", () => {
  test.each(table(optional, ({ name }) => name))("[HT-29] %s", async (_name, member) => {
    const body = makeBody(member, (at) => {
      at[member.name] = null;
    });
    const answer = await send(member.operation, body);
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(500);
    if (!isRefusal(answer, [...member.way, member.name].join("."))) return;
    // The handler rejects it, because it requires one of several members: the same as when it is omitted.
    const without = await send(
      member.operation,
      makeBody(member, (at) => {
        delete at[member.name];
      }),
    );
    expect(answer.body).toEqual(without.body);
  });
});

const uuids = optional.filter(({ schema }) => schema.format === "uuid");

describe("the zero UUID is treated as omitted", () => {
  test("[HT-29] the document marks the members for which the zero UUID has another meaning, and only those", () => {
    const zeroUuids = uuids.filter(({ schema }) => "x-zero" in schema);
    expect(zeroUuids.map(({ operation, name }) => `${operation.name} ${name}`)).toEqual([
      "PATCH /api/v2/chats/{chat} workspace_id",
    ]);
  });

  test.each(
    table(
      uuids.filter(({ schema }) => !("x-zero" in schema)),
      ({ name }) => name,
    ),
  )("[HT-29] %s", async (_name, member) => {
    const zero = makeBody(member, (at) => {
      at[member.name] = NIL_UUID;
    });
    const without = makeBody(member, (at) => {
      delete at[member.name];
    });
    const answers = [await send(member.operation, zero), await send(member.operation, without)];
    expect(answers[0]).toEqual(answers[1] as (typeof answers)[0]);
  });
});

describe("members that a schema forbids", () => {
  const strict = spots.filter(({ schema }) => schema.additionalProperties === false);

  test("[HT-30] permissions of chats and answers to their questions are strict", () => {
    expect(strict.map(({ operation, way }) => `${operation.name} ${way.join(".")}`)).toEqual(
      expect.arrayContaining([
        "POST /api/v2/chats permissions",
        "POST /api/v2/chats permissions.rules.0",
        "PUT /api/v2/chats/config/user-permissions permissions.rules.0",
        "PATCH /api/v2/chats/{chat} permissions.rules.0",
        "POST /api/v2/chats/{chat}/permissions answers.0",
      ]),
    );
  });

  test.each(table(strict, () => "commands"))("[HT-30] %s is refused and named", async (_name, spot) => {
    for (const name of ["commands", "__proto__", "constructor"]) {
      const body = makeBody(spot, (at) => {
        Object.defineProperty(at, name, { value: "git status", enumerable: true });
      });
      const { status, body: answer } = await send(spot.operation, body);
      expect({ status, fields: answer.validations?.map(({ field }) => field) }).toEqual({
        status: 400,
        fields: [[...spot.way, name].join(".")],
      });
      expect(answer.validations?.[0]?.detail).toStartWith("is unknown; use one of ");
    }
  });

  test("[HT-30] a misspelled rule allows nothing: it is not stored", async () => {
    const path = "/api/v2/chats/config/user-permissions";
    const before = await admin.get(path);
    const rule = { tool: "execute", commands: "git status", action: "allow" };
    const refused = await admin.fetch("PUT", path, { permissions: { default: "ask", rules: [rule] } });
    expect(refused.status).toBe(400);
    expect(await admin.get(path)).toEqual(before);
  });

  test("[HT-30] other routes accept unknown members, because clients of other versions send them", async () => {
    const created = await admin.post<{ name: string }>("/api/v2/organizations", { name: "extra", not_known: { a: 1 } });
    expect(created.name).toBe("extra");
  });
});
