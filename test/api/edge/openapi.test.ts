// The OpenAPI document: valid, complete, and written for people.
import { expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { createApp } from "#src/api/app.ts";
import { getOptions } from "#src/api/http/operation.ts";
import { fetchDocument, listOperations, type Operation, type Schema } from "#test/fuzz/operations.ts";
import { forFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";

const server = await forFile(startTestServer({ clock: new ManualClock() }));
const document = await fetchDocument(server.url);
const operations = listOperations(document);

const names = (wrong: (operation: Operation) => boolean): string[] => operations.filter(wrong).map(({ name }) => name);

test("[HT-16] the document is valid OpenAPI 3.0", async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(document) as never);
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});

// The page itself, and aliases of routes that are described under their main path.
const UNDESCRIBED = ["/swagger", "/api/experimental/chats", "/api/experimental/users"];
/** Has no other path. */
const DESKTOP = "/api/experimental/chats/:chat/stream/desktop";
const isUndescribed = (path: string): boolean =>
  path !== DESKTOP && UNDESCRIBED.some((prefix) => path.startsWith(prefix));

test("[HT-16] every route is in it, except the pages, and nothing else is", () => {
  const routes = createApp(getContext(server) as never).routes.filter(
    ({ hooks, path }) => hooks.detail?.hide !== true && !isUndescribed(path),
  );
  const described = operations.map(({ name }) => name).sort();
  const served = routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
  expect([...new Set(served)].sort()).toEqual(described);
});

test("[HT-16] every operation has a known tag, a summary, its own name and a success response", () => {
  const tags = new Set(document.tags.map(({ name }) => name));
  expect(names(({ described }) => described.tags?.length !== 1 || !tags.has(described.tags[0] as string))).toEqual([]);
  expect(names(({ described }) => !/^[A-Z].*[^.]$/.test(described.summary ?? ""))).toEqual([]);
  expect(
    names(({ described }) => !Object.keys(described.responses).some((status) => /^(101|2\d\d|307)$/.test(status))),
  ).toEqual([]);
  const ids = operations.map(({ described }) => described.operationId);
  expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
});

test("[HT-16] every parameter, answer and status is described", () => {
  expect(names(({ parameters }) => parameters.some(({ description }) => !description))).toEqual([]);
  expect(
    names(({ described }) => Object.values(described.responses).some(({ description }) => description.length < 3)),
  ).toEqual([]);
  const placeholders = /\{(\w+)\}/g;
  expect(
    names(({ path, parameters }) =>
      [...path.matchAll(placeholders)].some(
        ([, name]) => !parameters.some((one) => one.in === "path" && one.name === name),
      ),
    ),
  ).toEqual([]);
});

test("[HT-16] it documents the callers, the 401 for anonymous callers, and the body limit", () => {
  expect(
    names(({ callers, described }) => callers.length > 0 !== "401" in described.responses && callers.length > 0),
  ).toEqual([]);
  expect(names(({ described }) => described.security === undefined)).toEqual([]);
  expect(names(({ described, bodyLimit }) => described.requestBody !== undefined && bodyLimit === undefined)).toEqual(
    [],
  );
});

test("[HT-16] examples of bodies belong to operations and fit their schemas; where `me` can stand it is the example", () => {
  const bodyExamples = operations.flatMap(({ name, described }) => {
    const media = described.requestBody?.content["application/json"];
    return media?.example === undefined ? [] : [{ name, schema: media.schema, example: media.example }];
  });
  const declared = createApp(getContext(server) as never)
    .routes.filter(({ path, hooks }) => !isUndescribed(path) && getOptions(hooks).example)
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
  expect(bodyExamples.length).toBeGreaterThan(30);
  expect(bodyExamples.map(({ name }) => name).sort()).toEqual(declared.sort());
  expect(bodyExamples.flatMap(({ name, schema, example }) => misfits(schema, example, name))).toEqual([]);
  const selves = operations.flatMap(({ method, parameters }) =>
    parameters
      .filter(({ in: place, description }) => place === "path" && description?.includes("`me`"))
      .map(({ example }) => ({ method, example })),
  );
  expect(selves.length).toBeGreaterThan(20);
  expect(selves.filter(({ method, example }) => (example === "me") !== (method !== "DELETE"))).toEqual([]);
});

/** Returns where a value violates its schema, as far as the examples need it. */
const misfits = (schema: Schema, value: unknown, at: string): string[] => {
  const listFailures = (...checks: [boolean, string][]): string[] =>
    checks.flatMap(([ok, what]) => (ok ? [] : [`${at}: ${what}`]));
  const saysNothing = !schema.type && !schema.anyOf && !schema.enum;
  if (saysNothing) return [];
  if (schema.anyOf)
    return listFailures([schema.anyOf.some((one) => misfits(one, value, at).length === 0), "fits nothing"]);
  const failures = listFailures([
    schema.enum === undefined || schema.enum.includes(value),
    `${value} is none of its values`,
  ]);
  if (typeof value === "string") {
    const { pattern = "", minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
    const fits = new RegExp(pattern).test(value) && value.length >= minLength && value.length <= maxLength;
    return [...failures, ...listFailures([schema.type === "string", "is a text"], [fits, `${value} does not fit`])];
  }
  if (typeof value === "number")
    return [...failures, ...listFailures([["integer", "number"].includes(schema.type ?? ""), "is a number"])];
  if (Array.isArray(value))
    return [...failures, ...value.flatMap((one, i) => misfits(schema.items ?? {}, one, `${at}.${i}`))];
  if (typeof value !== "object" || value === null) return failures;
  const { properties = {}, required = [], additionalProperties } = schema;
  const otherSchema = typeof additionalProperties === "object" ? additionalProperties : undefined;
  return [
    ...listFailures([required.every((field) => field in value), "lacks a field"]),
    ...Object.entries(value).flatMap(([field, inner]) => {
      const fieldSchema = properties[field] ?? otherSchema;
      return fieldSchema ? misfits(fieldSchema, inner, `${at}.${field}`) : [`${at}: knows no ${field}`];
    }),
  ];
};

test("[HT-16] it contains no keywords of another schema language", () => {
  const invalidKeywords = new Set(["$id", "const", "patternProperties", "examples", "$schema", "anyOf-null"]);
  const problems: string[] = [];
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === "example") continue;
      const isName = path.endsWith(".properties");
      if (!isName && invalidKeywords.has(key)) problems.push(`${path}.${key}`);
      if (
        !isName &&
        key === "type" &&
        !["string", "number", "integer", "boolean", "array", "object", "apiKey"].includes(String(inner))
      ) {
        problems.push(`${path}.type = ${inner}`);
      }
      walk(inner, `${path}.${key}`);
    }
  };
  walk(document, "");
  expect(problems).toEqual([]);
});

/** Yields all schemas of the document with their location. */
function* walkSchemas(value: unknown, path = ""): Generator<[place: string, schema: Schema]> {
  if (typeof value !== "object" || value === null) return;
  if (["type", "nullable", "$ref", "anyOf", "allOf"].some((key) => key in value) && !path.endsWith(".properties"))
    yield [path, value as Schema];
  for (const [key, inner] of Object.entries(value)) {
    if (key !== "example" && key !== "default") yield* walkSchemas(inner, `${path}.${key}`);
  }
}

test("[HT-41] `nullable` accompanies a type, and defaults are of the type of their schema", () => {
  const untyped = [...walkSchemas(document)].filter(([, { nullable, type }]) => nullable !== undefined && !type);
  expect(untyped.map(([place]) => place)).toEqual([]);
  const strange = [...walkSchemas(document)].filter(
    ([place, schema]) => schema.default !== undefined && misfits(schema, schema.default, place).length > 0,
  );
  expect(strange.map(([place]) => place)).toEqual([]);
});

test("[HT-41] the document names a server, and every component is used", () => {
  expect(document.servers).toEqual([{ url: "/", description: "The server that answered this document." }]);
  const text = JSON.stringify(document);
  const unused = Object.entries(document.components).flatMap(([kind, components]) =>
    kind === "securitySchemes"
      ? []
      : Object.keys(components).filter((name) => !text.includes(`"#/components/${kind}/${name}"`)),
  );
  expect(unused).toEqual([]);
});

test("[HT-41] query parameters that the specification requires are required, and have the types they mean", () => {
  const shown = (name: string): string[] =>
    (operations.find((one) => one.name === `GET /api/v2/${name}`)?.parameters ?? [])
      .filter((one) => one.in === "query")
      .map((one) => `${one.name}${one.required ? "" : "?"}: ${one.schema.format ?? one.schema.type}`);
  expect(shown("audit")).toContain("limit: integer");
  expect(shown("insights/daus")).toEqual(["tz_offset: integer"]);
  expect(shown("insights/templates")).toEqual([
    "start_time: date-time",
    "end_time: date-time",
    "template_ids?: array",
    "interval: string",
    "sections?: array",
  ]);
  expect(shown("workspaceagents/{workspaceagent}/containers")).toEqual(["label: array"]);
  expect(shown("workspaceagents/{workspaceagent}/logs")).toEqual([
    "before?: integer",
    "after?: integer",
    "follow?: boolean",
    "no_compression?: boolean",
    "format?: string",
  ]);
  expect(shown("workspaceagents/me/reinit")).toEqual(["wait?: boolean"]);
  expect(shown("workspaceagents/me/external-auth")).toContain("listen?: boolean");
  const asWords = operations.flatMap(({ name, parameters }) =>
    parameters.flatMap((one) =>
      one.schema.type === "string" && /\b(Boolean|Required)\b/.test(one.description ?? "")
        ? [`${name} ${one.name}`]
        : [],
    ),
  );
  expect(asWords).toEqual([]);
});

test("[HT-41] no pattern has lookahead or lookbehind, which parsers in Go or Rust lack", () => {
  const patterns = [...walkSchemas(document)].filter(([, { pattern = "" }]) => /\(\?(<?[=!])/.test(pattern));
  expect(patterns.map(([place]) => place)).toEqual([]);
});

test("[HT-41] an extension requires its deadline, which is a time and never null", () => {
  const extend = operations.find(({ name }) => name === "PUT /api/v2/workspaces/{workspace}/extend");
  expect(extend?.body?.required).toEqual(["deadline"]);
  const { type, format, nullable }: Schema = extend?.body?.properties?.deadline ?? {};
  expect({ type, format, nullable }).toEqual({ type: "string", format: "date-time", nullable: undefined });
});

test("[HT-41] an upload declares the file name header and all accepted types", () => {
  const upload = operations.find(({ name }) => name === "POST /api/v2/chats/files");
  const header = upload?.parameters.find(({ name }) => name === "Content-Disposition");
  expect([header?.in, header?.required, header?.schema.type]).toEqual(["header", true, "string"]);
  expect(Object.keys(upload?.described.requestBody?.content ?? {})).toContain("application/json");
});
