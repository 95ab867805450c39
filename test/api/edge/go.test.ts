// Every response for a client of the second kind on the routes of workspaces, agents, templates, users and chats, parsed as a Go program
// would (facts/wire 0 and 5). The routes come from the OpenAPI document.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Operation, Schema } from "#test/fuzz/operations.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { findProblems } from "./go-reading.ts";
import { OPERATION_NAMES as ALL, callAs, chooseTest, getRow } from "./matrix-call.ts";
import { CALLERS, type CallerName, type MatrixWorld, openMatrixWorld, type TestObjects } from "./matrix-world.ts";

const CHECKED_PATHS =
  /^\S+ \/api\/v2\/(workspaces|workspaceagents|workspacebuilds|templates|templateversions|users|organizations|chats|deployment|buildinfo)/;
const APP_URL = "http://localhost:3000";
const RICH: Manifest = {
  provisioner: "echo",
  resources: [
    {
      name: "main",
      metadata: [{ key: "region", value: "here" }],
      agents: [
        {
          name: "dev",
          os: "linux",
          arch: "amd64",
          apps: [
            { slug: "web", url: APP_URL, healthcheck: { url: `${APP_URL}/up`, interval: 5, threshold: 3 } },
            { slug: "editor", url: "vscode://coder.coder-remote/open?token=$SESSION_TOKEN", external: true },
          ],
          scripts: [{ display_name: "start", script: "true", run_on_start: true, timeout: 30 }],
          metadata: [{ key: "load", script: "uptime", interval: 10, timeout: 2 }],
        },
      ],
    },
  ],
};

/** Reads run first, because changes affect what other operations show. */
const isRead = (name: string): boolean => name.startsWith("GET ");
const NAMES = ALL.filter((name) => CHECKED_PATHS.test(name) && !name.startsWith("DELETE ")).sort(
  (a, b) => Number(isRead(b)) - Number(isRead(a)),
);

const findResponseSchema = ({ described }: Operation, status: number): Schema | undefined =>
  described.responses[String(status)]?.content?.["application/json"]?.schema;

describeInProcess("a strict parser", () => {
  let world: MatrixWorld;
  beforeAll(async () => {
    world = await openMatrixWorld({ manifest: RICH });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const createThings = async (
    maker: keyof MatrixWorld["makers"] | undefined,
    caller: CallerName,
  ): Promise<TestObjects> => (maker ? { ...world.things, ...(await world.makers[maker](caller)) } : world.things);

  const checkResponses = async (name: string): Promise<void> => {
    const operation = world.operations.find((operation) => operation.name === name);
    if (!operation) return;
    const row = getRow(name);
    const statuses = row.statuses.split(" ").map(Number);
    const problems: string[] = [];
    for (const caller of ["ada", "admin", "agent"] as const) {
      if ((statuses[CALLERS.indexOf(caller)] ?? 0) > 299) continue;
      const things = await createThings(row.fresh, caller);
      const extraHeaders = { "Coder-Session-Token": things.caller ?? world.tokens[caller] ?? "" };
      const response = await callAs(world, operation, row, undefined, things, {}, extraHeaders);
      if (!response.ok) problems.push(`${caller} gets ${response.status}`);
      if (!response.ok || !response.headers.get("content-type")?.includes("application/json")) {
        await response.body?.cancel();
        continue;
      }
      const text = await response.text();
      if (text !== "") problems.push(...findProblems(JSON.parse(text), findResponseSchema(operation, response.status)));
    }
    expect(problems).toEqual([]);
  };
  for (const name of NAMES) chooseTest(name)(`[HT-21] ${name}`, () => checkResponses(name));

  test("[HT-21] rejects invalid values", () => {
    const schema: Schema = {
      type: "object",
      properties: { id: { type: "string", format: "uuid" }, apps: { type: "array" } },
    };
    const wrongTypes = { id: "", apps: null, created_at: "", parent_id: { uuid: "", valid: false }, timeout: 1.5 };
    const properties = { ...schema.properties, created_at: {}, parent_id: {}, timeout: {} };
    expect(findProblems(wrongTypes, { ...schema, properties })).toHaveLength(5);
  });
});
