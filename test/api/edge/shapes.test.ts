// Names in the OpenAPI document, which generated clients use for types and operations.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { NAME, namedShapes } from "#schema/shape-names.ts";
import { createApp } from "#src/api/app.ts";
import { listSchemas } from "#src/api/http/answers/answer-validators.ts";
import { type DescribedOperation, type Document, fetchDocument, type Schema } from "#test/fuzz/operations.ts";
import { getContext } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";

let server: TestServer;
let document: Document;
let operations: { name: string; described: DescribedOperation }[];
beforeAll(async () => {
  server = await startTestServer();
  document = await fetchDocument(server.url);
  operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, described]) => ({ name: `${method.toUpperCase()} ${path}`, described })),
  );
});
afterAll(() => server[Symbol.asyncDispose]());

/** Yields every nested value with its path. */
function* walkValues(
  value: unknown,
  path: readonly string[] = [],
): Generator<[path: readonly string[], value: object]> {
  if (typeof value !== "object" || value === null) return;
  yield [path, value];
  for (const [key, inner] of Object.entries(value)) if (key !== "example") yield* walkValues(inner, [...path, key]);
}

/** The first words of operation names. */
const VERBS = new Set(
  "accept activate add answer archive await cancel check clear compact complete confirm connect coordinate create delete disable discard download edit evaluate expire export extend favorite fetch fork get interrupt join keep list mark measure open pause poll promote propose raise read reconcile recreate redirect refresh regenerate remove rename replace report require resolve restart restore resume save send serve set share sign start stop stream submit try unarchive unfavorite unlink unshare update upload validate wake watch".split(
    " ",
  ),
);

test("[HT-31] every operation's name is a verb and an object, like a client method", () => {
  const ids = operations.map(({ described }) => described.operationId);
  expect(ids.filter((id) => !/^[a-z]+(?:[A-Z][A-Za-z0-9]*)?$/.test(id))).toEqual([]);
  expect(ids.filter((id) => !VERBS.has(/^[a-z]+/.exec(id)?.[0] ?? ""))).toEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
});

test("[HT-31] every reference resolves, and everything with a name is referenced", () => {
  const refs = [...walkValues(document)].flatMap(([, value]) => ("$ref" in value ? [value.$ref as string] : []));
  const { schemas, responses } = document.components;
  const knownNames = [
    ...Object.keys(schemas).map((name) => `#/components/schemas/${name}`),
    ...Object.keys(responses).map((name) => `#/components/responses/${name}`),
  ];
  expect([...new Set(refs)].filter((ref) => !knownNames.includes(ref))).toEqual([]);
  expect(Object.keys(schemas).filter((name) => !refs.includes(`#/components/schemas/${name}`))).toEqual([]);
});

test("[HT-31] the document contains every named object and enum once, under its name", () => {
  const anonymous = [...walkValues(document.paths), ...walkValues(document.components.schemas)].flatMap(
    ([path, value]) => {
      const { type, properties = {} } = value as Schema;
      const isComponent = path.length === 1 && path[0] !== undefined && path[0] in document.components.schemas;
      return type === "object" && Object.keys(properties).length > 0 && !isComponent ? [path.join(".")] : [];
    },
  );
  expect(anonymous).toEqual([]);
  const byShape = new Map<string, string[]>();
  for (const [name, { description: _, ...shape }] of Object.entries(document.components.schemas)) {
    const text = JSON.stringify(Object.entries(shape).sort(([a], [b]) => (a < b ? -1 : 1)));
    byShape.set(text, [...(byShape.get(text) ?? []), name]);
  }
  // These shapes are equal, but have different meanings.
  const equalShapes = [...byShape.values()].filter((names) => names.length > 1).map((names) => names.join(" "));
  expect(equalShapes.sort()).toEqual([
    "AutofillParameter TemplatePresetParameter",
    "ChatBudgetPauseDecider RecentRepositoryWorkspace",
    "Error Generic",
    "PersonalModelOverrides SetDebugLoggingRequest",
  ]);
  for (const name of ["Workspace", "WorkspaceBuild", "WorkspaceStatus", "Chat", "ChatStatus", "Template", "User"])
    expect(document.components.schemas).toHaveProperty(name);
});

test("[HT-31] a named shape is the same in every use", () => {
  const problems: string[] = [];
  const check = (schema: unknown, location: string): void => {
    for (const [path, value] of walkValues(schema)) {
      const name = (value as Record<string, unknown>)[NAME];
      if (typeof name !== "string") continue;
      const { properties, anyOf } = value as Schema;
      const defined = namedShapes.get(name) as Schema | undefined;
      const isSame = Bun.deepEquals({ properties, anyOf }, { properties: defined?.properties, anyOf: defined?.anyOf });
      if (!isSame) problems.push(`${location} ${path.join(".")}: ${name}`);
    }
  };
  for (const { hooks, method, path } of createApp(getContext(server) as never).routes)
    check({ body: hooks.body, response: listSchemas(hooks) }, `${method} ${path}`);
  expect(problems).toEqual([]);
});

test("[HT-31] every success declares its content: a shape, a media type, or nothing", () => {
  const unspecific = operations.flatMap(({ name, described }) =>
    Object.entries(described.responses)
      .filter(([status]) => status.startsWith("2"))
      .filter(([, { content }]) => Object.values(content ?? {}).some(({ schema }) => !isSpecific(schema)))
      .map(([status]) => `${name} ${status}`),
  );
  expect(unspecific).toEqual([]);
  const withoutContent = operations.flatMap(({ name, described }) =>
    described.responses["200"] && !described.responses["200"].content && !("x-sends" in described) ? [name] : [],
  );
  expect(withoutContent.sort()).toEqual([
    "DELETE /api/v2/workspaces/{workspace}/port-share",
    "GET /api/v2/workspaceagents/me/gitauth",
    "GET /api/v2/workspaceagents/{workspaceagent}/startup-logs",
    "GET /derp/latency-check",
  ]);
});

const isSpecific = (schema: Schema): boolean =>
  schema.$ref !== undefined || schema.type !== undefined || schema.allOf !== undefined || schema.anyOf !== undefined;

test("[HT-31] streams name the shape of their messages, unless they carry another protocol", () => {
  const isStream = ({ responses }: DescribedOperation): boolean =>
    "101" in responses || Object.keys(responses["200"]?.content ?? {}).includes("text/event-stream");
  const unnamed = operations.filter(({ described }) => isStream(described) && !("x-sends" in described));
  expect(unnamed.map(({ described }) => described.operationId).sort()).toEqual([
    "connectAgent",
    "connectAgentTunnel",
    "connectRelay",
    "coordinateAgent",
    "joinTailnet",
    "openChatDesktop",
    "openTerminal",
    "serveProvisionerDaemon",
  ]);
});

test("[HT-31] every error has all members of the shape Error", () => {
  const { Error: error } = document.components.schemas;
  const wrongShapes = operations.flatMap(({ name, described }) =>
    Object.entries(described.responses)
      .filter(([status]) => Number(status) >= 400)
      .filter(([, response]) => {
        if ("$ref" in response) return false;
        const [, shape = ""] = /schemas\/(\w+)$/.exec(response.content?.["application/json"]?.schema.$ref ?? "") ?? [];
        const members = document.components.schemas[shape]?.properties ?? {};
        return !Object.keys(error?.properties ?? {}).every((member) => member in members);
      })
      .map(([status]) => `${name} ${status}`),
  );
  expect(wrongShapes).toEqual([]);
});

test("[HT-31] the document is small, because nothing is duplicated", () => {
  const isText = (key: string, value: unknown) => ["description", "summary"].includes(key) && typeof value === "string";
  const shapes = JSON.stringify(document, (key, value) => (isText(key, value) ? undefined : value));
  expect(shapes.length).toBeLessThan(575_000);
  // About 325 kB of this are descriptions.
  expect(JSON.stringify(document).length).toBeLessThan(920_000);
});
