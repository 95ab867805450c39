// The OpenAPI document: valid, complete, and written for people.
import { expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { ANY_ID, idsOf, withIds } from "#src/api/http/document/example-ids.ts";
import { declaredBy } from "#src/api/http/operation.ts";
import { Client } from "#src/client.ts";
import { createApp } from "#src/server.ts";
import { fetchDocument, type Operation, operationsOf, type Schema } from "#test/fuzz/operations.ts";
import { forFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { contextOf } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { ECHO, seedTemplate } from "#test/support/workspaces.ts";

const server = await forFile(startTestServer({ clock: new ManualClock() }));
const document = await fetchDocument(server.url);
const operations = operationsOf(document);

const names = (wrong: (operation: Operation) => boolean): string[] => operations.filter(wrong).map(({ name }) => name);

test("[HT-16] the document is valid OpenAPI 3.0", async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(document) as never);
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});

// The page itself, and second names of routes that are described under their first.
const UNDESCRIBED = ["/swagger", "/api/experimental/chats", "/api/experimental/users"];
/** Has no other name. */
const DESKTOP = "/api/experimental/chats/:chat/stream/desktop";
const isUndescribed = (path: string): boolean =>
  path !== DESKTOP && UNDESCRIBED.some((prefix) => path.startsWith(prefix));

test("[HT-16] every route is in it, except the pages, and nothing else is", () => {
  const routes = createApp(contextOf(server) as never).routes.filter(
    ({ hooks, path }) => hooks.detail?.hide !== true && !isUndescribed(path),
  );
  const described = operations.map(({ name }) => name).sort();
  const served = routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
  expect([...new Set(served)].sort()).toEqual(described);
});

test("[HT-16] every operation has a known tag, a summary, a name of its own and a good answer", () => {
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

test("[HT-16] it says who may call, that strangers get 401, and how large a body may be", () => {
  expect(
    names(({ callers, described }) => callers.length > 0 !== "401" in described.responses && callers.length > 0),
  ).toEqual([]);
  expect(names(({ described }) => described.security === undefined)).toEqual([]);
  expect(names(({ described, bodyLimit }) => described.requestBody !== undefined && bodyLimit === undefined)).toEqual(
    [],
  );
});

test("[HT-16] examples of bodies belong to operations and fit their schemas; where `me` can stand it is the example", () => {
  const shown = operations.flatMap(({ name, described }) => {
    const media = described.requestBody?.content["application/json"];
    return media?.example === undefined ? [] : [{ name, schema: media.schema, example: media.example }];
  });
  const declared = createApp(contextOf(server) as never)
    .routes.filter(({ path, hooks }) => !isUndescribed(path) && declaredBy(hooks).example)
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
  expect(shown.length).toBeGreaterThan(30);
  expect(shown.map(({ name }) => name).sort()).toEqual(declared.sort());
  expect(shown.flatMap(({ name, schema, example }) => misfits(schema, example, name))).toEqual([]);
  const selves = operations.flatMap(({ method, parameters }) =>
    parameters
      .filter(({ in: place, description }) => place === "path" && description?.includes("`me`"))
      .map(({ example }) => ({ method, example })),
  );
  expect(selves.length).toBeGreaterThan(20);
  expect(selves.filter(({ method, example }) => (example === "me") !== (method !== "DELETE"))).toEqual([]);
});

test("[HT-16] bodies work as the page fills them in, with the ids of what its reader has", async () => {
  await using own = await startTestServer();
  await seedTemplate(own, ECHO, { name: "fine" });
  const client = await new Client(own.url).signIn(ADMIN.email, ADMIN.password);
  const page = await (await client.fetch("GET", "/swagger/page.js")).text();
  expect(page).toContain("const withIds = ");
  const fetched = (await client.get("/swagger/json")) as Parameters<typeof withIds>[0];
  const ids = await idsOf((path) => client.get(path));
  const filled = withIds(fetched, ids, ANY_ID);
  const send = async (method: "post" | "put" | "patch", path: string): Promise<[string, number]> => {
    const body = filled.paths[path]?.[method]?.requestBody?.content?.["application/json"]?.example;
    const at = path.replace("{user}", "me").replace("{organization}", "default").replace("{workspace}", workspace);
    const answer = await client.fetch(method.toUpperCase(), at, body);
    return [path, answer.status];
  };
  let workspace = "";
  expect(await send("post", "/api/v2/users/{user}/workspaces")).toEqual(["/api/v2/users/{user}/workspaces", 200]);
  workspace = (await client.get<{ id: string }>("/api/v2/users/me/workspace/first")).id;
  const answers = [
    await send("post", "/api/v2/chats"),
    await send("put", "/api/v2/users/{user}/profile"),
    await send("post", "/api/v2/users/{user}/keys/tokens"),
    await send("post", "/api/v2/users/{user}/skills"),
    await send("post", "/api/v2/organizations"),
    await send("post", "/api/v2/organizations/{organization}/provisionerkeys"),
    await send("post", "/api/v2/chats/providers"),
    await send("post", "/api/v2/chats/model-configs"),
    await send("put", "/api/v2/chats/config/user-permissions"),
    await send("put", "/api/v2/workspaces/{workspace}/ttl"),
    await send("put", "/api/v2/workspaces/{workspace}/autostart"),
    await send("put", "/api/v2/workspaces/{workspace}/autoupdates"),
  ];
  expect(answers.filter(([, status]) => status >= 300)).toEqual([]);
}, 60_000);

/** Where a value breaks its schema, in the words that the examples need. */
const misfits = (schema: Schema, value: unknown, at: string): string[] => {
  const bad = (...checks: [boolean, string][]): string[] =>
    checks.flatMap(([ok, what]) => (ok ? [] : [`${at}: ${what}`]));
  if (schema.anyOf) return bad([schema.anyOf.some((one) => misfits(one, value, at).length === 0), "fits nothing"]);
  const found = bad([schema.enum === undefined || schema.enum.includes(value), `${value} is none of its values`]);
  if (typeof value === "string") {
    const { pattern = "", minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
    const fits = new RegExp(pattern).test(value) && value.length >= minLength && value.length <= maxLength;
    return [...found, ...bad([schema.type === "string", "is a text"], [fits, `${value} does not fit`])];
  }
  if (typeof value === "number")
    return [...found, ...bad([["integer", "number"].includes(schema.type ?? ""), "is a number"])];
  if (Array.isArray(value))
    return [...found, ...value.flatMap((one, i) => misfits(schema.items ?? {}, one, `${at}.${i}`))];
  if (typeof value !== "object" || value === null) return found;
  const { properties = {}, required = [], additionalProperties } = schema;
  const rest = typeof additionalProperties === "object" ? additionalProperties : undefined;
  return [
    ...bad([required.every((field) => field in value), "lacks a field"]),
    ...Object.entries(value).flatMap(([field, inner]) => {
      const known = properties[field] ?? rest;
      return known ? misfits(known, inner, `${at}.${field}`) : [`${at}: knows no ${field}`];
    }),
  ];
};

test("[HT-16] no words of another schema language are left in it", () => {
  const words = new Set(["$id", "const", "patternProperties", "examples", "$schema", "anyOf-null"]);
  const found: string[] = [];
  const walk = (value: unknown, place: string): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === "example") continue;
      const isName = place.endsWith(".properties");
      if (!isName && words.has(key)) found.push(`${place}.${key}`);
      if (
        !isName &&
        key === "type" &&
        !["string", "number", "integer", "boolean", "array", "object", "apiKey"].includes(String(inner))
      ) {
        found.push(`${place}.type = ${inner}`);
      }
      walk(inner, `${place}.${key}`);
    }
  };
  walk(document, "");
  expect(found).toEqual([]);
});
