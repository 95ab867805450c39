// Traces as a collector receives them. The test controls only the model server; everything else is real.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { beginSpan, runInNewSpan } from "#base/spans.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { McpServerConfig } from "#schema/chats/mcp-server.ts";
import { createGuardedFetch } from "#src/llm/fetch.ts";
import { openTelemetry } from "#src/telemetry/open.ts";
import { type McpHost, startMcpHost } from "#test/mcp/support.ts";
import { createChat } from "#test/support/chats.ts";
import { openGatewayWorld } from "#test/support/models/gateway-world.ts";
import { addModel } from "#test/support/models/model-world.ts";
import { OtlpReceiver, type ReceivedSpan } from "#test/support/net/otlp-receiver.ts";
import { getContext } from "#test/support/seed.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace } from "#test/support/workspaces.ts";

const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER_SPAN_ID = "00f067aa0ba902b7";
const toTraceHeaders = (trace = TRACE_ID): Record<string, string> => ({
  traceparent: `00-${trace}-${CALLER_SPAN_ID}-01`,
});

let receiver: OtlpReceiver;
let host: McpHost;
let world: Awaited<ReturnType<typeof openGatewayWorld>>;
beforeAll(async () => {
  receiver = new OtlpReceiver();
  host = startMcpHost();
  world = await openGatewayWorld({
    env: {
      SLIPWAY_OTLP_ENDPOINT: receiver.url,
      SLIPWAY_OTLP_HEADERS: "x-key=s3cret%20key",
      SLIPWAY_OTLP_PROPAGATE_TO_MODELS: "true",
      SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8",
      SLIPWAY_METRICS_ADDRESS: "127.0.0.1:0",
    },
  });
  await addModel(world);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await host[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});

const awaitSpan = (name: string | RegExp): Promise<ReceivedSpan> =>
  until(() => receiver.find(name), { what: `the span ${name}` });
const listChildren = ({ span_id }: ReceivedSpan): string[] =>
  receiver.spans.filter(({ parent_id }) => parent_id === span_id).map(({ name }) => name);

test("[OP-24] a request's span continues the caller's trace, and has the route but no path, query or key", async () => {
  const id = crypto.randomUUID();
  const headers = { ...toTraceHeaders(), "x-request-id": "mine" };
  await world.owner.fetch("GET", `/api/v2/workspaces/${id}?canary=query-canary`, undefined, { headers });
  const span = await awaitSpan("GET /api/v2/workspaces/:workspace");
  expect(span).toMatchObject({ trace_id: TRACE_ID, parent_id: CALLER_SPAN_ID, kind: "server", failed: false });
  expect(span.attributes).toEqual({
    "http.request.method": "GET",
    "http.route": "/api/v2/workspaces/:workspace",
    "http.response.status_code": 404,
    "url.scheme": "http",
  });
  expect(span.ended > span.began).toBe(true);
  expect(receiver.resources[0]).toMatchObject({ "service.name": "slipway", "telemetry.sdk.language": "nodejs" });
  expect(receiver.headers[0]?.get("x-key")).toBe("s3cret key");

  await world.owner.fetch("GET", `/made-up-canary/${id}`);
  await world.owner.fetch("GET", "/api/v2/buildinfo", undefined, { headers: { traceparent: "00-no-trace-01" } });
  expect((await awaitSpan("GET /api/v2/buildinfo")).parent_id).toBeUndefined();
  const exported = receiver.texts.join("\n");
  for (const canary of [id, "canary", "mine", world.owner.token as string, "s3cret"])
    expect(exported).not.toContain(canary);
  expect(receiver.find(/healthz|readyz/)).toBeUndefined();
});

test("[OP-25] a build is part of its request's trace, with queue, plan, apply and commits", async () => {
  const { id: template_id } = await makeTemplate(world.owner);
  const workspace = await createWorkspace(world.owner, template_id);
  await awaitBuild(world.owner, workspace.id);
  const build = await awaitSpan("build");
  const request = await awaitSpan("POST /api/v2/users/:user/workspaces");
  expect(build).toMatchObject({ trace_id: request.trace_id, parent_id: request.span_id, failed: false });
  expect(build.attributes).toMatchObject({
    "slipway.workspace.id": workspace.id,
    "slipway.build.transition": "start",
    "slipway.provisioner": "echo",
  });
  expect(listChildren(build)).toEqual(expect.arrayContaining(["queue", "plan", "apply"]));
  const commit = receiver.spans.find(({ name, parent_id }) => name === "commit" && parent_id === request.span_id);
  expect(commit?.attributes).toMatchObject({ "slipway.commit.wait_ms": expect.any(Number) });
  expect(commit?.attributes["db.operation.batch.size"]).toBeGreaterThan(1);
});

test("[OP-25] a turn's span has model calls, tools and MCP calls, without message content", async () => {
  const base = `/api/v2/organizations/${world.organization_id}/mcp-servers`;
  const server = await world.owner.post<McpServerConfig>(base, { slug: "sums", url: `${host.url}/mcp` });
  const chat: Chat = await createChat(world, "prompt-canary", { mcp_server_ids: [server.id] });
  const first = await world.upstream.next();
  expect(first.headers.get("traceparent")).toMatch(/^00-[\da-f]{32}-[\da-f]{16}-01$/);
  const toolCall = { index: 0, id: "c1", function: { name: "sums__echo", arguments: '{"a":7139317193}' } };
  const toChunk = (members: object) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", ...members })}\n\n`;
  const toDelta = (delta: object, finish_reason: string | null = null) =>
    toChunk({ choices: [{ index: 0, delta, finish_reason }] });
  const usage = toChunk({ choices: [], usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 } });
  first
    .sendRaw(toDelta({ tool_calls: [toolCall] }))
    .sendRaw(toDelta({}, "tool_calls"))
    .sendRaw(usage)
    .sendRaw("data: [DONE]\n\n")
    .end();
  const second = await world.upstream.next();
  second
    .sendRaw(toDelta({ content: "answer-canary" }))
    .sendRaw(toDelta({}, "stop"))
    .sendRaw(usage)
    .sendRaw("data: [DONE]\n\n")
    .end();

  const turn = await awaitSpan("invoke_agent slipway");
  expect(turn.attributes).toMatchObject({ "gen_ai.conversation.id": chat.id });
  expect((await awaitSpan("POST /api/v2/chats")).span_id).toBe(turn.parent_id as string);
  const calls = receiver.spans.filter(({ name }) => name === "chat test-model");
  expect(calls).toHaveLength(2);
  expect(calls[0]).toMatchObject({ kind: "client", parent_id: turn.span_id, failed: false });
  expect(calls[0]?.attributes).toMatchObject({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai-compat",
    "gen_ai.request.model": "test-model",
    "gen_ai.usage.input_tokens": 12,
    "gen_ai.usage.output_tokens": 3,
    "gen_ai.response.finish_reasons": ["tool_calls"],
  });
  expect(first.headers.get("traceparent")).toContain(`${turn.trace_id}-${calls[0]?.span_id}`);
  const tool = await awaitSpan("execute_tool sums__echo");
  expect(await awaitSpan("tools/call echo")).toMatchObject({ kind: "client", parent_id: tool.span_id });
  for (const canary of ["prompt-canary", "answer-canary", "7139317193"])
    expect(receiver.texts.join("\n")).not.toContain(canary);
});

test("[OP-25] an AI gateway call has a span with tokens; model servers get the trace only if allowed", async () => {
  const trace = "aaaabbbbccccddddaaaabbbbccccdddd";
  const responsePromise = fetch(`${world.base}/openai/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${world.token}`, "content-type": "application/json", ...toTraceHeaders(trace) },
    body: JSON.stringify({ model: "test-model", messages: [{ role: "user", content: "gateway-canary" }] }),
  });
  const upstream = await world.upstream.next();
  upstream.answer(200, {
    id: "c",
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: "yes" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
  });
  expect((await responsePromise).status).toBe(200);
  const span = await until(() =>
    receiver.spans.find(({ name, trace_id }) => name === "chat test-model" && trace_id === trace),
  );
  expect(span.attributes).toMatchObject({ "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 2 });
  expect(upstream.headers.get("traceparent")).toBe(`00-${trace}-${span.span_id}-01`);
  expect(receiver.texts.join("\n")).not.toContain("gateway-canary");

  const untracedFetch = createGuardedFetch({ private: true, hosts: [] });
  const callModel = () => untracedFetch(`${world.upstream.url}/v1/chat/completions`, { method: "POST", body: "{}" });
  const pending = runInNewSpan(() => ({ name: "untraced" }), callModel);
  const call = await world.upstream.next();
  expect(call.headers.has("traceparent")).toBe(false);
  call.answer(200);
  await pending;
});

test("[OP-26] a failing or hanging collector affects no request; a metric counts dropped spans", async () => {
  const countDropped = async (reason: string): Promise<number> => {
    const text = (await getContext(world.server).metrics?.text()) ?? "";
    return Number(new RegExp(`^slipway_spans_dropped_total\\{reason="${reason}"\\} (\\d+)$`, "m").exec(text)?.[1]);
  };
  expect(await countDropped("export_failed")).toBe(0);
  receiver.answer = () => new Response(null, { status: 400 });
  expect((await world.owner.fetch("GET", "/api/v2/buildinfo")).status).toBe(200);
  await until(async () => (await countDropped("export_failed")) > 0);

  const hanging = Promise.withResolvers<Response>();
  receiver.answer = () => hanging.promise;
  for (let i = 0; i < 3_000; i++) beginSpan({ name: "one of many" })?.end();
  expect(await countDropped("buffer_full")).toBeGreaterThan(900);
  expect((await world.owner.fetch("GET", "/api/v2/buildinfo")).status).toBe(200);
  receiver.answer = undefined;
  hanging.resolve(new Response(null, { status: 400 }));
  const before = receiver.spans.length;
  await until(async () => {
    await world.owner.fetch("GET", "/api/v2/buildinfo");
    return receiver.spans.length > before;
  });
});

test("[OP-26] sends the remaining spans when it stops, and keeps only the configured share of new traces", async () => {
  await using ownReceiver = new OtlpReceiver();
  const config = { otlp_headers: undefined, otlp_service_name: "mine", otlp_sample_percent: 0 };
  {
    await using _ = openTelemetry(new URL(ownReceiver.url), config, systemClock);
    beginSpan({ name: "left out" })?.end();
  }
  {
    await using _ = openTelemetry(new URL(`${ownReceiver.url}/`), { ...config, otlp_sample_percent: 100 }, systemClock);
    beginSpan({ name: "the last" })?.end();
  }
  expect(ownReceiver.spans.map(({ name }) => name)).toEqual(["the last"]);
  expect(ownReceiver.resources).toMatchObject([{ "service.name": "mine" }]);
});
