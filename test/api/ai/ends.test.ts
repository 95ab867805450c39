// AI gateway calls that end abnormally: abandoned, cut off, unreadable, implausible, or with their token revoked.
import { expect, test } from "bun:test";
import type { AiUsage } from "#schema/ai/gateway.ts";
import { Client } from "#src/client.ts";
import { createGatewayToken, listGatewayCalls, openGatewayWorld } from "#test/support/models/gateway-world.ts";
import { addModel, MODEL_KEY } from "#test/support/models/model-world.ts";
import { until } from "#test/support/until.ts";

type GatewayWorld = Awaited<ReturnType<typeof openGatewayWorld>>;

const USAGE = { prompt_tokens: 12, completion_tokens: 3 };
const delta = (content: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
const PRICE = { model_config: { cost: { input: 1_000_000, output: 10_000_000 } } };

const body = JSON.stringify({
  model: "test-model",
  stream: true,
  max_tokens: 9,
  messages: [{ role: "user", content: "hello ".repeat(500) }],
});
const callModel = (
  world: GatewayWorld,
  { signal, token = world.token }: { signal?: AbortSignal; token?: string } = {},
) =>
  fetch(`${world.base}/openai/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body,
    ...(signal && { signal }),
  });
const row = (world: GatewayWorld, outcome: string) =>
  until(async () => (await listGatewayCalls(world.owner)).find((one) => one.outcome === outcome));

test("[GW-5] a caller that disconnects before the first byte is charged for the prompt, and for all text received later", async () => {
  await using world = await openGatewayWorld();
  await addModel(world, "openai", PRICE);
  const early = new AbortController();
  const asked = callModel(world, { signal: early.signal }).catch(() => undefined);
  const first = await world.upstream.next();
  early.abort();
  await Promise.all([asked, first.gone]);
  const left = await row(world, "aborted");
  expect(left).toMatchObject({ output_tokens: 0, is_estimated: true });
  expect(left?.input_tokens).toBeGreaterThan(1_000);
  expect(left?.cost_micros).toBeGreaterThan(1_000);

  const refused = callModel(world);
  (await world.upstream.next()).answer(400, { error: { message: "no" } });
  expect((await refused).status).toBe(400);
  expect(await row(world, "failed")).toMatchObject({ input_tokens: 0, cost_micros: 0, is_estimated: false });

  const late = new AbortController();
  const streamed = callModel(world, { signal: late.signal });
  const second = await world.upstream.next();
  second.sendRaw(delta("x".repeat(8_000)));
  const reader = (await streamed).body?.getReader();
  for (let size = 0; size < 8_000; ) size += (await reader?.read())?.value?.length ?? 0;
  late.abort();
  await second.gone;
  const seen = await until(async () => (await listGatewayCalls(world.owner)).find((one) => one.output_tokens > 0));
  expect(seen).toMatchObject({ outcome: "aborted", output_tokens: 2_000, is_estimated: true });
});

test("[GW-5] [GW-11] a truncated response is charged by estimate; one without a readable byte is a 502 in the dialect", async () => {
  await using world = await openGatewayWorld();
  await addModel(world, "openai", PRICE);
  const halved = callModel(world);
  const half = await world.upstream.next();
  half.sendRaw(delta("half an answer"));
  const reader = (await halved).body?.getReader();
  await reader?.read();
  half.tear();
  await reader?.read().catch(() => {});
  const failed = await row(world, "failed");
  expect(failed).toMatchObject({ is_estimated: true, output_tokens: 4 });
  expect(failed?.input_tokens).toBeGreaterThan(1_000);

  const unpacked = callModel(world);
  (await world.upstream.next()).answer(200, "no gzip at all", { "content-encoding": "gzip" });
  const unreadable = await unpacked;
  expect([unreadable.status, await unreadable.json()]).toMatchObject([502, { error: { code: "provider_unreadable" } }]);
  const nothing = callModel(world);
  const empty = await world.upstream.next();
  empty.answer(200, "", { "content-length": "50" });
  empty.tear();
  expect((await nothing).status).toBe(502);
});

test("[GW-5] implausible figures are replaced by estimates, and sums remain sums", async () => {
  await using world = await openGatewayWorld();
  await addModel(world, "openai", PRICE);
  const asked = callModel(world);
  (await world.upstream.next()).answer(200, '{"choices":[],"usage":{"prompt_tokens":1e300,"completion_tokens":1e300}}');
  expect((await asked).status).toBe(200);
  expect(await row(world, "ok")).toMatchObject({ is_estimated: true, output_tokens: 0 });
  const { total } = await world.owner.get<AiUsage>("/api/v2/ai/usage?by=model");
  expect(total.total_cost_micros).toBeGreaterThan(1_000);
  expect(total.total_cost_micros).toBeLessThan(10_000);
});

test("[GW-3] no provider header leaks its key or redirects elsewhere, and a redirect becomes a 502", async () => {
  await using world = await openGatewayWorld();
  await addModel(world, "openai", PRICE);
  const odd = {
    "x-echo": `Bearer ${MODEL_KEY}`,
    "x-request-id": MODEL_KEY,
    location: "https://elsewhere.example",
    refresh: "0;url=https://elsewhere.example",
    link: "<https://elsewhere.example>; rel=preload",
    "content-disposition": "attachment",
    "x-kept": "yes",
  };
  for (const status of [200, 400]) {
    const asked = callModel(world);
    (await world.upstream.next()).answer(status, { echo: MODEL_KEY, choices: [], usage: USAGE }, odd);
    const { headers } = await asked;
    expect(await (await asked).text()).not.toContain(MODEL_KEY);
    expect(headers.get("x-kept")).toBe("yes");
    expect(Object.keys(odd).filter((name) => name !== "x-kept" && headers.has(name))).toEqual([]);
  }
  const asked = fetch(`${world.base}/openai/v1/chat/completions`, {
    method: "POST",
    redirect: "manual",
    headers: { authorization: `Bearer ${world.token}` },
    body,
  });
  (await world.upstream.next()).answer(307, "", odd);
  const redirected = await asked;
  expect([redirected.status, redirected.headers.get("location")]).toEqual([502, null]);
  expect(await redirected.json()).toMatchObject({ error: { code: "provider_redirects" } });
  expect(JSON.stringify(await listGatewayCalls(world.owner))).not.toContain(MODEL_KEY);
});

test("[GW-13] [GW-16] a stream ends with the token that asked for it or its person's last membership, before its first byte and after", async () => {
  await using world = await openGatewayWorld();
  await addModel(world, "openai", PRICE);
  const token = await createGatewayToken(world.owner);
  const [waiting, streaming] = [callModel(world, { token }), callModel(world, { token })];
  const [one, two] = [await world.upstream.next(), await world.upstream.next()];
  one.sendRaw(delta("x".repeat(400)));
  const opened = await Promise.race([waiting, streaming]);
  const reader = opened.body?.getReader();
  await reader?.read();
  await world.owner.delete(`/api/v2/users/me/keys/${token.split("-")[0]}`);
  await Promise.all([one.gone, two.gone]);
  expect(await reader?.read().catch(() => "cut")).toBe("cut");
  const statuses = (await Promise.all([waiting, streaming])).map(({ status }) => status);
  expect(statuses.sort()).toEqual([200, 401]);
  const rows = await until(async () => {
    const all = await listGatewayCalls(world.owner);
    return all.length === 2 ? all : undefined;
  });
  expect(rows.map(({ outcome, is_estimated }) => [outcome, is_estimated])).toEqual([
    ["aborted", true],
    ["aborted", true],
  ]);
  expect(rows.map(({ output_tokens }) => output_tokens).sort()).toEqual([0, 100]);

  const mia = {
    email: "m@example.com",
    username: "mia",
    password: "correct-horse-battery",
    organization_ids: [world.organization_id],
  };
  const { id } = await world.owner.post<{ id: string }>("/api/v2/users", mia);
  const hers = await createGatewayToken(await new Client(world.server.url).signIn(mia.email, mia.password));
  const membership = `/api/v2/organizations/${world.organization_id}/members/mia`;
  const removed = callModel(world, { token: hers });
  const before = await world.upstream.next();
  await world.owner.delete(membership);
  await before.gone;
  expect((await removed).status).toBe(401);
  expect((await callModel(world, { token: hers })).status).toBe(403);
  await world.owner.post(membership);
  const suspended = callModel(world, { token: hers });
  const last = await world.upstream.next();
  await world.owner.put(`/api/v2/users/${id}/status/suspend`);
  await last.gone;
  expect((await suspended).status).toBe(401);
});
