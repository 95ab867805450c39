// How every body in the OpenAPI document, at any depth, handles members that some clients cannot omit (null, the zero UUID) and members
// that its schema forbids.
import { afterAll, describe, expect, test } from "bun:test";
import { NIL_UUID } from "#base/ids.ts";
import type { Generic } from "#schema/generic.ts";
import { Client } from "#src/client.ts";
import { fetchDocument, fillPath, listOperations, type Operation, type Schema } from "#test/fuzz/operations.ts";
import { createExampleValue } from "#test/fuzz/values.ts";
import { seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";

const server = await startTestServer();
const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
const agent = admin.withToken((await seedAgent(server)).agent_token);
const operations = listOperations(await fetchDocument(server.url));
afterAll(() => server[Symbol.asyncDispose]());

/** An object in the body of an operation: its path (a number is a list item) and its schema. */
type BodyObject = { operation: Operation; path: (string | number)[]; schema: Schema };

const listObjects = (
  operation: Operation,
  schema: Schema | undefined,
  path: (string | number)[] = [],
): BodyObject[] => {
  if (!schema) return [];
  const object = schema.type === "object" ? [{ operation, path, schema }] : [];
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    listObjects(operation, property, [...path, name]),
  );
  const variants = (schema.anyOf ?? []).flatMap((variant) => listObjects(operation, variant, path));
  return [...object, ...members, ...variants, ...listObjects(operation, schema.items, [...path, 0])];
};

const objects = operations.flatMap((operation) => listObjects(operation, operation.body));
const toRows = <T extends { operation: Operation; path: (string | number)[] }>(
  items: T[],
  getName: (item: T) => string,
) => items.map((item) => [`${item.operation.name} ${[...item.path, getName(item)].join(".")}`, item] as const);

/** Returns valid values with all required members and those on the path; other optional ones are omitted. */
const buildValue = (schema: Schema, [step, ...rest]: (string | number)[]): unknown => {
  if (schema.anyOf) {
    const variantOnPath = schema.anyOf.find(({ items, properties }) =>
      typeof step === "number" ? items : step && properties?.[step],
    );
    return buildValue(variantOnPath ?? (schema.anyOf[0] as Schema), step === undefined ? [] : [step, ...rest]);
  }
  if (schema.items) return typeof step === "number" ? [buildValue(schema.items, rest)] : buildNonNull(schema);
  if (schema.type !== "object") return buildNonNull(schema);
  const names = Object.keys(schema.properties ?? {}).filter((name) => schema.required?.includes(name) || name === step);
  return Object.fromEntries(
    names.map((name) => [name, buildValue(schema.properties?.[name] as Schema, name === step ? rest : [])]),
  );
};
const buildNonNull = (schema: Schema): unknown => createExampleValue({ ...schema, nullable: false });

/** Builds a valid body and changes the object at this path. */
const buildBody = (
  { operation, path }: Pick<BodyObject, "operation" | "path">,
  change: (object: Record<string, unknown>) => void,
) => {
  const body = buildValue(operation.body as Schema, [...path]);
  change(path.reduce((value, step) => (value as Record<string, unknown>)[step], body) as Record<string, unknown>);
  return body;
};

const send = async (
  operation: Operation,
  body: unknown,
): Promise<{ status: number; fields: string[]; body: Generic }> => {
  const path = Object.fromEntries(
    operation.parameters
      .filter((parameter) => parameter.in === "path")
      .map(({ name, schema }) => [name, PATH[name] ?? String(createExampleValue(schema))]),
  );
  const [caller] = operation.callers;
  const client = caller === "agent" ? agent : caller === undefined ? admin.withToken(undefined) : admin;
  const response = await client.fetch(operation.method, fillPath(operation, path), body);
  const text = await response.text();
  const responseBody = (text.startsWith("{") ? JSON.parse(text) : {}) as Generic;
  const fields = (responseBody.validations ?? []).map(({ field }) => field);
  return { status: response.status, fields, body: responseBody };
};
const PATH: Record<string, string> = { user: "me", organization: "default" };

type Member = BodyObject & { name: string };
const optionalMembers: Member[] = objects.flatMap(({ operation, path, schema }) =>
  Object.entries(schema.properties ?? {})
    .filter(([name]) => !schema.required?.includes(name))
    .map(([name, property]) => ({ operation, path, name, schema: property })),
);

/** Deletes the member from a valid body. */
const omit = (member: Member) =>
  buildBody(member, (object) => {
    delete object[member.name];
  });

const rejectsField = ({ status, fields }: { status: number; fields: string[] }, name: string): boolean =>
  status === 400 && fields.some((field) => field === name || field.startsWith(`${name}.`));

describe("null is treated as omitted", () => {
  test.each(toRows(optionalMembers, ({ name }) => name))("[HT-29] %s", async (_name, member) => {
    const bodyWithNull = buildBody(member, (object) => {
      object[member.name] = null;
    });
    const response = await send(member.operation, bodyWithNull);
    expect(response.status, JSON.stringify(response.body)).toBeLessThan(500);
    if (!rejectsField(response, [...member.path, member.name].join("."))) return;
    // The handler requires one of several members, so it must reject a body without this one in the same way.
    const responseWithout = await send(member.operation, omit(member));
    expect(response.body).toEqual(responseWithout.body);
  });
});

const uuidMembers = optionalMembers.filter(({ schema }) => schema.format === "uuid");

describe("the zero UUID is treated as omitted", () => {
  test("[HT-29] the document marks the members for which the zero UUID has another meaning, and only those", () => {
    const membersWithZero = uuidMembers.filter(({ schema }) => "x-zero" in schema);
    expect(membersWithZero.map(({ operation, name }) => `${operation.name} ${name}`)).toEqual([
      "PATCH /api/v2/chats/{chat} workspace_id",
    ]);
  });

  test.each(
    toRows(
      uuidMembers.filter(({ schema }) => !("x-zero" in schema)),
      ({ name }) => name,
    ),
  )("[HT-29] %s", async (_name, member) => {
    const bodyWithZero = buildBody(member, (object) => {
      object[member.name] = NIL_UUID;
    });
    const responseWithZero = await send(member.operation, bodyWithZero);
    expect(responseWithZero).toEqual(await send(member.operation, omit(member)));
  });
});

describe("members that a schema forbids", () => {
  const strictObjects = objects.filter(({ schema }) => schema.additionalProperties === false);

  test("[HT-30] forbids unknown members in permissions of chats and answers to their questions", () => {
    expect(strictObjects.map(({ operation, path }) => `${operation.name} ${path.join(".")}`)).toEqual(
      expect.arrayContaining([
        "POST /api/v2/chats permissions",
        "POST /api/v2/chats permissions.rules.0",
        "PUT /api/v2/chats/config/user-permissions permissions.rules.0",
        "PATCH /api/v2/chats/{chat} permissions.rules.0",
        "POST /api/v2/chats/{chat}/permissions answers.0",
      ]),
    );
  });

  test.each(toRows(strictObjects, () => "commands"))("[HT-30] %s is rejected by name", async (_name, object) => {
    for (const name of ["commands", "__proto__", "constructor"]) {
      const body = buildBody(object, (target) => {
        Object.defineProperty(target, name, { value: "git status", enumerable: true });
      });
      const { status, fields, body: responseBody } = await send(object.operation, body);
      expect({ status, fields }).toEqual({
        status: 400,
        fields: [[...object.path, name].join(".")],
      });
      expect(responseBody.validations?.[0]?.detail).toStartWith("is unknown; use one of ");
    }
  });

  test("[HT-30] rejects and does not store a misspelled rule", async () => {
    const path = "/api/v2/chats/config/user-permissions";
    const before = await admin.get(path);
    const rule = { tool: "execute", commands: "git status", action: "allow" };
    const response = await admin.fetch("PUT", path, { permissions: { default: "ask", rules: [rule] } });
    expect(response.status).toBe(400);
    expect(await admin.get(path)).toEqual(before);
  });

  test("[HT-30] other routes accept unknown members, because clients of other versions send them", async () => {
    const created = await admin.post<{ name: string }>("/api/v2/organizations", { name: "extra", not_known: { a: 1 } });
    expect(created.name).toBe("extra");
  });
});
