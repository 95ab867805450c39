// The OpenAPI document is valid and complete, and describes everything for readers.
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

const listNames = (matches: (operation: Operation) => boolean): string[] =>
  operations.filter(matches).map(({ name }) => name);

test("[HT-16] the document is valid OpenAPI 3.0", async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(document) as never);
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});

// The page itself, and aliases of routes that are described under their main path.
const UNDESCRIBED = ["/swagger", "/api/experimental/chats", "/api/experimental/users"];
/** The only route below these prefixes that is not an alias. */
const DESKTOP = "/api/experimental/chats/:chat/stream/desktop";
const isUndescribed = (path: string): boolean =>
  path !== DESKTOP && UNDESCRIBED.some((prefix) => path.startsWith(prefix));

test("[HT-16] the document describes exactly the server's routes, except pages", () => {
  const routes = createApp(getContext(server) as never).routes.filter(
    ({ hooks, path }) => hooks.detail?.hide !== true && !isUndescribed(path),
  );
  const described = operations.map(({ name }) => name).sort();
  const served = routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
  expect([...new Set(served)].sort()).toEqual(described);
});

test("[HT-16] every operation has a known tag, a summary, its own name and a success response", () => {
  const tags = new Set(document.tags.map(({ name }) => name));
  expect(listNames(({ described }) => described.tags?.length !== 1 || !tags.has(described.tags[0] as string))).toEqual(
    [],
  );
  expect(listNames(({ described }) => !/^[A-Z].*[^.]$/.test(described.summary ?? ""))).toEqual([]);
  expect(
    listNames(({ described }) => !Object.keys(described.responses).some((status) => /^(101|2\d\d|307)$/.test(status))),
  ).toEqual([]);
  const ids = operations.map(({ described }) => described.operationId);
  expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
});

test("[HT-16] describes every parameter, response and status", () => {
  expect(listNames(({ parameters }) => parameters.some(({ description }) => !description))).toEqual([]);
  expect(
    listNames(({ described }) => Object.values(described.responses).some(({ description }) => description.length < 3)),
  ).toEqual([]);
  const placeholders = /\{(\w+)\}/g;
  expect(
    listNames(({ path, parameters }) =>
      [...path.matchAll(placeholders)].some(
        ([, name]) => !parameters.some((parameter) => parameter.in === "path" && parameter.name === name),
      ),
    ),
  ).toEqual([]);
});

test("[HT-16] documents the callers, the 401 for anonymous callers, and the body limit", () => {
  expect(
    listNames(({ callers, described }) => callers.length > 0 !== "401" in described.responses && callers.length > 0),
  ).toEqual([]);
  expect(listNames(({ described }) => described.security === undefined)).toEqual([]);
  expect(
    listNames(({ described, bodyLimit }) => described.requestBody !== undefined && bodyLimit === undefined),
  ).toEqual([]);
});

test("[HT-16] examples of bodies match their schemas; `me` is the example where it is allowed", () => {
  const bodyExamples = operations.flatMap(({ name, described }) => {
    const media = described.requestBody?.content["application/json"];
    return media?.example === undefined ? [] : [{ name, schema: media.schema, example: media.example }];
  });
  const declared = createApp(getContext(server) as never)
    .routes.filter(({ path, hooks }) => !isUndescribed(path) && getOptions(hooks).example)
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
  expect(bodyExamples.length).toBeGreaterThan(30);
  expect(bodyExamples.map(({ name }) => name).sort()).toEqual(declared.sort());
  expect(bodyExamples.flatMap(({ name, schema, example }) => findMismatches(schema, example, name))).toEqual([]);
  const userParameters = operations.flatMap(({ method, parameters }) =>
    parameters
      .filter(({ in: place, description }) => place === "path" && description?.includes("`me`"))
      .map(({ example }) => ({ method, example })),
  );
  expect(userParameters.length).toBeGreaterThan(20);
  expect(userParameters.filter(({ method, example }) => (example === "me") !== (method !== "DELETE"))).toEqual([]);
});

/** Returns where a value violates its schema, as far as the examples need it. */
const findMismatches = (schema: Schema, value: unknown, path: string): string[] => {
  const listFailures = (...checks: [boolean, string][]): string[] =>
    checks.flatMap(([isValid, problem]) => (isValid ? [] : [`${path}: ${problem}`]));
  const acceptsAnything = !schema.type && !schema.anyOf && !schema.enum;
  if (acceptsAnything) return [];
  if (schema.anyOf)
    return listFailures([
      schema.anyOf.some((variant) => findMismatches(variant, value, path).length === 0),
      "matches no variant",
    ]);
  const failures = listFailures([
    schema.enum === undefined || schema.enum.includes(value),
    `${value} is not an allowed value`,
  ]);
  if (typeof value === "string") {
    const { pattern = "", minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
    const isWithinLimits = new RegExp(pattern).test(value) && value.length >= minLength && value.length <= maxLength;
    return [
      ...failures,
      ...listFailures([schema.type === "string", "is a text"], [isWithinLimits, `${value} does not fit`]),
    ];
  }
  if (typeof value === "number")
    return [...failures, ...listFailures([["integer", "number"].includes(schema.type ?? ""), "is a number"])];
  if (Array.isArray(value))
    return [...failures, ...value.flatMap((item, i) => findMismatches(schema.items ?? {}, item, `${path}.${i}`))];
  if (typeof value !== "object" || value === null) return failures;
  const { properties = {}, required = [], additionalProperties } = schema;
  const otherSchema = typeof additionalProperties === "object" ? additionalProperties : undefined;
  return [
    ...listFailures([required.every((field) => field in value), "has no required field"]),
    ...Object.entries(value).flatMap(([field, inner]) => {
      const fieldSchema = properties[field] ?? otherSchema;
      return fieldSchema
        ? findMismatches(fieldSchema, inner, `${path}.${field}`)
        : [`${path}: ${field} is not in the schema`];
    }),
  ];
};

test("[HT-16] contains no keywords of another schema language", () => {
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

test("[HT-41] `nullable` always has a type, and defaults match their schemas", () => {
  const untyped = [...walkSchemas(document)].filter(([, { nullable, type }]) => nullable !== undefined && !type);
  expect(untyped.map(([place]) => place)).toEqual([]);
  const invalidDefaults = [...walkSchemas(document)].filter(
    ([place, schema]) => schema.default !== undefined && findMismatches(schema, schema.default, place).length > 0,
  );
  expect(invalidDefaults.map(([place]) => place)).toEqual([]);
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

test("[HT-41] query parameters are required where the specification says so, and have precise types", () => {
  const listQuery = (name: string): string[] =>
    (operations.find((operation) => operation.name === `GET /api/v2/${name}`)?.parameters ?? [])
      .filter((parameter) => parameter.in === "query")
      .map(({ name, required, schema }) => `${name}${required ? "" : "?"}: ${schema.format ?? schema.type}`);
  expect(listQuery("audit")).toContain("limit: integer");
  expect(listQuery("insights/daus")).toEqual(["tz_offset: integer"]);
  expect(listQuery("insights/templates")).toEqual([
    "start_time: date-time",
    "end_time: date-time",
    "template_ids?: array",
    "interval: string",
    "sections?: array",
  ]);
  expect(listQuery("workspaceagents/{workspaceagent}/containers")).toEqual(["label: array"]);
  expect(listQuery("workspaceagents/{workspaceagent}/logs")).toEqual([
    "before?: integer",
    "after?: integer",
    "follow?: boolean",
    "no_compression?: boolean",
    "format?: string",
  ]);
  expect(listQuery("workspaceagents/me/reinit")).toEqual(["wait?: boolean"]);
  expect(listQuery("workspaceagents/me/external-auth")).toContain("listen?: boolean");
  const typesInDescriptions = operations.flatMap((operation) =>
    operation.parameters.flatMap(({ name, schema, description }) =>
      schema.type === "string" && /\b(Boolean|Required)\b/.test(description ?? "") ? [`${operation.name} ${name}`] : [],
    ),
  );
  expect(typesInDescriptions).toEqual([]);
});

test("[HT-41] patterns have no lookahead or lookbehind, which parsers in Go and Rust lack", () => {
  const patterns = [...walkSchemas(document)].filter(([, { pattern = "" }]) => /\(\?(<?[=!])/.test(pattern));
  expect(patterns.map(([place]) => place)).toEqual([]);
});

test("[HT-41] an extension requires a deadline that is never null", () => {
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
