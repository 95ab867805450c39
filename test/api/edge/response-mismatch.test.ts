// Responses that violate their own schemas because of stored data are sent anyway; the server logs and counts the mismatch.
import { expect, test } from "bun:test";
import { Type as t } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { configureLogging, resetLogging } from "#base/log.ts";
import { checkAnswer } from "#src/api/http/answers/answer-check.ts";
import { prune, ResponseMismatches } from "#src/api/http/answers/response-mismatch.ts";
import { Operations } from "#src/api/http/operations.ts";
import { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";

type Page = { audit_logs: { id: string; action: string; resource_id: string }[]; count: number };

testInProcess("[HT-25] returns a page with an invalid row, and logs and counts the mismatch", async () => {
  await using server = await startTestServer({
    allowMismatches: true,
    env: { SLIPWAY_METRICS_ADDRESS: "127.0.0.1:0" },
  });
  const context = server.context as NonNullable<typeof server.context>;
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  await admin.post("/api/v2/organizations", { name: "first" });
  await admin.post("/api/v2/organizations", { name: "second" });
  const before = await admin.get<Page>("/api/v2/audit?limit=0");
  expect(context.requests.mismatches.count).toBe(0);
  const invalidId = before.audit_logs[0]?.id ?? "";
  await context.store.commit([
    { sql: "update audit_logs set action = 'polished', resource_id = 'AbCdEf0123' where id = ?", rows: [[invalidId]] },
  ]);
  const lines: string[] = [];
  configureLogging({ level: "info", format: "json", write: (line) => void lines.push(line) });
  const after = await admin.get<Page>("/api/v2/audit?limit=0");
  resetLogging();
  expect(after.count).toBe(before.count);
  expect(after.audit_logs.map(({ id }) => id)).toEqual(before.audit_logs.map(({ id }) => id));
  // Strict clients parse this value as a UUID, so it is replaced with a valid one.
  expect(after.audit_logs[0]).toMatchObject({
    action: "polished",
    resource_id: "00000000-0000-0000-0000-000000000000",
  });
  expect(context.requests.mismatches.count).toBe(1);
  expect(context.requests.mismatches.kept[0]).toMatchObject({ method: "GET", route: "/api/v2/audit" });
  const mismatches = lines.filter((line) => line.includes("does not fit"));
  expect(mismatches).toHaveLength(1);
  expect(mismatches[0]).toContain("audit_logs.0.action");
  expect(mismatches[0]?.length).toBeLessThan(1_000);
  for (const value of ["polished", ADMIN.email, "second"]) expect(mismatches[0]).not.toContain(value);
  expect(await context.metrics?.text()).toContain("slipway_http_response_mismatches_total 1");
});

testInProcess("[HT-25] a test server fails the test whose responses do not match", async () => {
  const server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  await server.context?.store.commit([{ sql: "update audit_logs set action = 'polished'", rows: [[]] }]);
  expect((await admin.fetch("GET", "/api/v2/audit?limit=1")).status).toBe(200);
  expect(Promise.resolve(server[Symbol.asyncDispose]())).rejects.toThrow(/did not match (their schemas|its schema)/);
});

test("[HT-25] removes members that the schema does not define, at any depth", () => {
  const row = t.Object({ id: t.String({ format: "uuid" }), tags: t.Record(t.String(), t.String()), any: t.Any() });
  const schema = t.Object({
    rows: t.Array(row),
    one: t.Union([row, t.Null()]),
    state: t.Union([t.Literal("on"), t.Literal("off")]),
    none: t.Union([t.String(), t.Null()]),
  });
  const stored = { id: "short", tags: { a: "b", n: 1 }, any: { secret: false }, secret_hash: "hash" };
  const presented = { id: "short", tags: { a: "b", n: 1 }, any: { secret: false } };
  const value = { rows: [stored, null, 7], one: stored, state: "lost", none: { secret_hash: "hash" }, more: "hash" };
  expect(prune(schema, value)).toEqual({ rows: [presented, null, 7], one: presented, state: "lost", none: null });
});

test("[HT-25] checks responses that a handler has serialized for invalid values and unknown members", async () => {
  const schema = t.Object({ rows: t.Array(t.Object({ id: t.String({ format: "uuid" }) })) });
  const app = new Elysia().get("/rows/:row", () => ({ rows: [] }), { response: { 200: schema } });
  const [operations, mismatches] = [new Operations(app.routes), new ResponseMismatches()];
  const id = "5e1c9c5e-6f0e-4c1f-9a53-0f3f5a3b2c11";
  const checkRows = async (rows: object[], type = "application/json; charset=utf-8"): Promise<void> => {
    const response = new Response(JSON.stringify({ rows }), { headers: { "content-type": type } });
    await checkAnswer(new Request("http://localhost/rows/1"), response, { operations, mismatches });
    expect(await response.json()).toEqual({ rows });
  };
  await checkRows([{ id }]);
  await checkRows([{ id: "short" }], "text/plain");
  expect(mismatches.count).toBe(0);
  await checkRows([{ id }, { id: "short" }]);
  await checkRows([{ id, secret_hash: "hash" }]);
  expect(mismatches.kept).toEqual([
    { method: "GET", route: "/rows/:row", fields: [expect.stringMatching(/^rows\.1\.id: /)] },
    { method: "GET", route: "/rows/:row", fields: ["rows.0.secret_hash: not in the schema"] },
  ]);
});
