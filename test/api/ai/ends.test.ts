// AI gateway calls that end abnormally: abandoned, cut off, unreadable, implausible, or with their token revoked.
import { expect, test } from "bun:test";
import type { AiUsage } from "#schema/ai/gateway.ts";
import { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { createGatewayToken, listGatewayCalls, openGatewayWorld } from "#test/support/models/gateway-world.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, MODEL_KEY } from "#test/support/models/model-world.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { formatHead, readAnswer } from "../edge/raw-http.ts";

type GatewayWorld = Awaited<ReturnType<typeof openGatewayWorld>>;

const USAGE = { prompt_tokens: 12, completion_tokens: 3 };
const delta = (content: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
const PRICE = { model_config: { cost: { input: 1_000_000, output: 10_000_000 } } };

const toBody = (max_tokens = 9): string =>
  JSON.stringify({
    model: "test-model",
    stream: true,
    max_tokens,
    messages: [{ role: "user", content: "hello ".repeat(500) }],
  });
type CallOptions = { readonly signal?: AbortSignal; readonly token?: string; readonly max_tokens?: number };
const callModel = (world: GatewayWorld, { signal, token = world.token, max_tokens }: CallOptions = {}) =>
  fetch(`${world.base}/openai/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: toBody(max_tokens),
    ...(signal && { signal }),
  });
const waitForCall = (world: GatewayWorld, outcome: string) =>
  until(async () => (await listGatewayCalls(world.owner)).find((call) => call.outcome === outcome));

/** Resolves when the server reads this number of answers whose callers have disconnected. */
const waitForDraining = (world: GatewayWorld, count: number) =>
  until(() => getContext(world.server).ledger.answers.draining === count);

/** Calls the model and disconnects when this text has arrived. Returns the provider's side of the call. */
const callAndDisconnect = async (world: GatewayWorld, text: string, max_tokens?: number): Promise<ModelCall> => {
  const caller = new AbortController();
  const pendingResponse = callModel(world, { signal: caller.signal, max_tokens });
  const call = await world.upstream.next();
  call.sendRaw(delta(text));
  const reader = (await pendingResponse).body?.getReader();
  let receivedBytes = 0;
  while (receivedBytes < text.length) receivedBytes += (await reader?.read())?.value?.length ?? 0;
  caller.abort();
  return call;
};
/** Sends the usage of an answer and ends it. */
const sendUsage = (call: ModelCall, completion_tokens: number): void =>
  call
    .sendRaw(`data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 12, completion_tokens } })}\n\n`)
    .sendRaw("data: [DONE]\n\n")
    .end();
const listUsage = async (world: GatewayWorld) =>
  (await listGatewayCalls(world.owner)).map(({ outcome, input_tokens, output_tokens, is_estimated }) => ({
    outcome,
    input_tokens,
    output_tokens,
    is_estimated,
  }));

testInProcess(
  "[GW-5] [GW-19] charges a caller that disconnects the usage that the provider then reports, including hidden reasoning",
  async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "openai", PRICE);
    const lateCall = await callAndDisconnect(world, "the whole answer");
    await waitForDraining(world, 1);
    // The caller's reservation is kept, and the ledger does not contain the call yet.
    expect(await listUsage(world)).toEqual([]);
    sendUsage(lateCall, 50_000);
    const reported = { outcome: "aborted" as const, input_tokens: 12, output_tokens: 50_000, is_estimated: false };
    await until(async () => (await listUsage(world)).length === 1);
    expect(await listUsage(world)).toEqual([reported]);

    const earlyAbort = new AbortController();
    const pendingResponse = callModel(world, { signal: earlyAbort.signal }).catch(() => undefined);
    const unanswered = await world.upstream.next();
    earlyAbort.abort();
    await pendingResponse;
    await waitForDraining(world, 1);
    sendUsage(unanswered, 7);
    await until(async () => (await listUsage(world)).length === 2);
    expect(await listUsage(world)).toEqual([{ ...reported, output_tokens: 7 }, reported]);

    const refusedResponse = callModel(world);
    (await world.upstream.next()).answer(400, { error: { message: "no" } });
    expect((await refusedResponse).status).toBe(400);
    expect(await waitForCall(world, "failed")).toMatchObject({ input_tokens: 0, cost_micros: 0, is_estimated: false });
  },
);

test("[GW-5] [GW-19] charges the reserved output and closes the connection when no usage arrives within a minute", async () => {
  const clock = new ManualClock();
  await using world = await openGatewayWorld({ clock });
  await addModel(world, "openai", PRICE);
  const advanceUntilCharged = (callCount: number) =>
    until(async () => {
      clock.advance(5_000);
      return (await listGatewayCalls(world.owner)).length === callCount;
    });
  const streaming = await callAndDisconnect(world, "the whole answer", 60_000);
  await advanceUntilCharged(1);
  await streaming.gone;
  const [charged] = await listGatewayCalls(world.owner);
  expect(charged).toMatchObject({ outcome: "aborted", output_tokens: 60_000, is_estimated: true });
  expect(charged?.input_tokens).toBeGreaterThan(1_000);

  const earlyAbort = new AbortController();
  const pendingResponse = callModel(world, { signal: earlyAbort.signal }).catch(() => undefined);
  const unanswered = await world.upstream.next();
  earlyAbort.abort();
  await pendingResponse;
  await advanceUntilCharged(2);
  await unanswered.gone;
  expect((await listUsage(world))[0]).toMatchObject({ outcome: "aborted", output_tokens: 9, is_estimated: true });

  // The caller has received more text than the request allowed.
  await callAndDisconnect(world, "x".repeat(8_000));
  await advanceUntilCharged(3);
  expect((await listUsage(world))[0]).toMatchObject({ outcome: "aborted", output_tokens: 2_000, is_estimated: true });
});

test("[GW-19] reads at most 16 answers of a caller that disconnects; the reserved output of others is charged immediately", async () => {
  await using world = await openGatewayWorld();
  await addModel(world, "openai", PRICE);
  const disconnectedCalls: ModelCall[] = [];
  for (let i = 0; i < 17; i++) disconnectedCalls.push(await callAndDisconnect(world, "the whole answer", 500));
  await Promise.race(disconnectedCalls.map(({ gone }) => gone));
  expect(await waitForCall(world, "aborted")).toMatchObject({ output_tokens: 500, is_estimated: true });
  for (const call of disconnectedCalls) sendUsage(call, 100);
  await until(async () => (await listUsage(world)).length === 17);
  expect((await listUsage(world)).filter(({ output_tokens }) => output_tokens === 100)).toHaveLength(16);
});

test("[GW-19] closes a call to a self-hosted model without a price immediately, and estimates its usage from the text", async () => {
  await using world = await openGatewayWorld();
  await addModel(world, "openai-compat");
  const call = await callAndDisconnect(world, "x".repeat(400), 60_000);
  await call.gone;
  expect(await waitForCall(world, "aborted")).toMatchObject({ output_tokens: 100, is_estimated: true });
});

test("[GW-5] [GW-11] charges a truncated response by estimate; a response without a readable byte becomes a 502", async () => {
  await using world = await openGatewayWorld();
  await addModel(world, "openai", PRICE);
  const pendingResponse = callModel(world);
  const truncated = await world.upstream.next();
  truncated.sendRaw(delta("half an answer"));
  const reader = (await pendingResponse).body?.getReader();
  await reader?.read();
  truncated.resetConnection();
  await reader?.read().catch(() => {});
  const failed = await waitForCall(world, "failed");
  expect(failed).toMatchObject({ is_estimated: true, output_tokens: 4 });
  expect(failed?.input_tokens).toBeGreaterThan(1_000);

  const unreadableRequest = callModel(world);
  (await world.upstream.next()).answer(200, "no gzip at all", { "content-encoding": "gzip" });
  const unreadable = await unreadableRequest;
  expect([unreadable.status, await unreadable.json()]).toMatchObject([502, { error: { code: "provider_unreadable" } }]);
  const emptyRequest = callModel(world);
  const empty = await world.upstream.next();
  empty.answer(200, "", { "content-length": "50" });
  empty.resetConnection();
  expect((await emptyRequest).status).toBe(502);
});

test("[GW-5] replaces implausible usage with estimates, so that totals stay correct", async () => {
  await using world = await openGatewayWorld();
  await addModel(world, "openai", PRICE);
  const pendingResponse = callModel(world);
  (await world.upstream.next()).answer(200, '{"choices":[],"usage":{"prompt_tokens":1e300,"completion_tokens":1e300}}');
  expect((await pendingResponse).status).toBe(200);
  expect(await waitForCall(world, "ok")).toMatchObject({ is_estimated: true, output_tokens: 0 });
  const { total } = await world.owner.get<AiUsage>("/api/v2/ai/usage?by=model");
  expect(total.total_cost_micros).toBeGreaterThan(1_000);
  expect(total.total_cost_micros).toBeLessThan(10_000);
});

test("[GW-3] removes provider headers that contain the key or redirect the caller, and turns a redirect into a 502", async () => {
  await using world = await openGatewayWorld();
  await addModel(world, "openai", PRICE);
  const headersFromProvider = {
    "x-echo": `Bearer ${MODEL_KEY}`,
    "x-request-id": MODEL_KEY,
    location: "https://elsewhere.example",
    refresh: "0;url=https://elsewhere.example",
    link: "<https://elsewhere.example>; rel=preload",
    "content-disposition": "attachment",
    "x-kept": "yes",
  };
  for (const status of [200, 400]) {
    const pendingResponse = callModel(world);
    (await world.upstream.next()).answer(status, { echo: MODEL_KEY, choices: [], usage: USAGE }, headersFromProvider);
    const { headers } = await pendingResponse;
    expect(await (await pendingResponse).text()).not.toContain(MODEL_KEY);
    expect(headers.get("x-kept")).toBe("yes");
    expect(Object.keys(headersFromProvider).filter((name) => name !== "x-kept" && headers.has(name))).toEqual([]);
  }
  const pendingResponse = fetch(`${world.base}/openai/v1/chat/completions`, {
    method: "POST",
    redirect: "manual",
    headers: { authorization: `Bearer ${world.token}` },
    body: toBody(),
  });
  (await world.upstream.next()).answer(307, "", headersFromProvider);
  const redirected = await pendingResponse;
  expect([redirected.status, redirected.headers.get("location")]).toEqual([502, null]);
  expect(await redirected.json()).toMatchObject({ error: { code: "provider_redirects" } });
  expect(JSON.stringify(await listGatewayCalls(world.owner))).not.toContain(MODEL_KEY);
});

test("[GW-13] [GW-16] a stream ends when its token is revoked or its user loses the last membership, even before its first byte", async () => {
  await using world = await openGatewayWorld();
  await addModel(world, "openai", PRICE);
  const token = await createGatewayToken(world.owner);
  const [waiting, streaming] = [callModel(world, { token }), callModel(world, { token })];
  const [firstCall, secondCall] = [await world.upstream.next(), await world.upstream.next()];
  firstCall.sendRaw(delta("x".repeat(400)));
  const opened = await Promise.race([waiting, streaming]);
  const reader = opened.body?.getReader();
  await reader?.read();
  await world.owner.delete(`/api/v2/users/me/keys/${token.split("-")[0]}`);
  expect(await reader?.read().catch(() => "cut")).toBe("cut");
  const statuses = (await Promise.all([waiting, streaming])).map(({ status }) => status);
  expect(statuses.sort()).toEqual([200, 401]);
  // The provider bills both calls nevertheless.
  for (const call of [firstCall, secondCall]) sendUsage(call, 300);
  await until(async () => (await listUsage(world)).length === 2);
  const billed = { outcome: "aborted" as const, input_tokens: 12, output_tokens: 300, is_estimated: false };
  expect(await listUsage(world)).toEqual([billed, billed]);

  const mia = {
    email: "m@example.com",
    username: "mia",
    password: "correct-horse-battery",
    organization_ids: [world.organization_id],
  };
  const { id } = await world.owner.post<{ id: string }>("/api/v2/users", mia);
  const miaToken = await createGatewayToken(await new Client(world.server.url).signIn(mia.email, mia.password));
  const membership = `/api/v2/organizations/${world.organization_id}/members/mia`;
  const callAsRemoved = callModel(world, { token: miaToken });
  await world.upstream.next();
  await world.owner.delete(membership);
  expect((await callAsRemoved).status).toBe(401);
  expect((await callModel(world, { token: miaToken })).status).toBe(403);
  await world.owner.post(membership);
  const callAsSuspended = callModel(world, { token: miaToken });
  await world.upstream.next();
  await world.owner.put(`/api/v2/users/${id}/status/suspend`);
  expect((await callAsSuspended).status).toBe(401);
});

test("[GW-1] [HT-50] refuses a call whose token is deleted before its body has arrived, and does not forward it", async () => {
  const clock = new ManualClock();
  await using world = await openGatewayWorld({ clock });
  await addModel(world, "openai", PRICE);
  const token = await createGatewayToken(world.owner);
  const body = toBody();
  using connection = new RawConnection(world.server.url);
  const head = { Host: world.server.url.host, Authorization: `Bearer ${token}`, "Content-Length": body.length };
  connection.send(formatHead("POST", "/api/v2/ai/openai/v1/chat/completions", head) + body.slice(0, 50));
  await until(() => getContext(world.server).requests.size === 1);
  await world.owner.delete(`/api/v2/users/me/keys/${token.split("-")[0]}`);
  clock.advance(300);
  connection.send(body.slice(50));
  expect((await readAnswer(connection))?.status).toBe(401);
  expect(world.upstream.calls).toEqual([]);
  expect(await listUsage(world)).toEqual([]);
});
