// The ledger of model calls when the server is killed in the middle of them.
import { expect, test } from "bun:test";
import type { Budget } from "#schema/ai/budget.ts";
import type { AiUsage } from "#schema/ai/gateway.ts";
import { gatewayCalls, gatewayToken, setGateway } from "#test/support/models/gateway-world.ts";
import { ModelServer } from "#test/support/models/model-server.ts";
import { addModel } from "#test/support/models/model-world.ts";
import { ADMIN } from "#test/support/server.ts";
import { ServerPlace } from "../server.ts";

test("[GW-5] [GW-6] killed while calls are under way, the ledger keeps what was told and what was reserved, each once", async () => {
  await using upstream = await ModelServer.start();
  await using place = await ServerPlace.make();
  await place.start();
  const owner = await place.client.signIn(ADMIN.email, ADMIN.password);
  const cost = { input: 1_000_000, output: 10_000_000 };
  await addModel({ owner, upstream }, "anthropic", { model_config: { cost } });
  await setGateway(owner);
  const token = await gatewayToken(owner);
  const ask = (max_tokens: number) =>
    fetch(`http://127.0.0.1:${place.port}/api/v2/ai/anthropic/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": token },
      body: JSON.stringify({
        model: "test-model",
        stream: true,
        max_tokens,
        messages: [{ role: "user", content: "hello" }],
      }),
    });
  const whole = ask(7);
  const first = await upstream.next();
  const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
  first.raw(event({ type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } }));
  first.raw(event({ type: "message_delta", usage: { output_tokens: 7 } })).end();
  expect(await (await whole).text()).toContain("message_delta");
  const open = [ask(100), ask(200)];
  for (const _ of open) (await upstream.next()).raw(event({ type: "message_start", message: {} }));
  for (const one of open) expect((await one).status).toBe(200);
  place.newest.kill("SIGKILL");
  await place.newest.ended;
  for (let start = 0; start < 2; start++) {
    await place.start();
    const calls = await gatewayCalls(await place.client.signIn(ADMIN.email, ADMIN.password));
    expect(calls.map(({ outcome }) => outcome).sort()).toEqual(["lost", "lost", "ok"]);
    expect(calls.find(({ outcome }) => outcome === "ok")).toMatchObject({ output_tokens: 7, cost_micros: 73 });
    const lost = calls.filter(({ outcome }) => outcome === "lost").map(({ cost_micros }) => cost_micros ?? 0);
    // What an answer may have at most costs 1,000 and 2,000; the prompt a little.
    expect(lost.map((micros) => Math.floor(micros / 1_000)).sort()).toEqual([1, 2]);
    await place.stop();
  }
}, 60_000);

test("[BU-2] [BU-5] killed again and again with many calls under way, a budget is exceeded by no more than one reservation and nothing stays reserved", async () => {
  await using upstream = await ModelServer.start();
  await using place = await ServerPlace.make();
  await place.start();
  const owner = await place.client.signIn(ADMIN.email, ADMIN.password);
  await addModel({ owner, upstream }, "openai", { model_config: { cost: { input: 1_000_000, output: 10_000_000 } } });
  await setGateway(owner);
  const token = await gatewayToken(owner);
  const budget = { scope: "everyone", period: "month", unit: "usd", amount: 5_000 } as const;
  await owner.put("/api/v2/ai/budgets", budget);
  // Each call reserves a little more than 1,000.
  const ask = () =>
    fetch(`http://127.0.0.1:${place.port}/api/v2/ai/openai/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify({ model: "test-model", stream: true, max_tokens: 100, messages: [] }),
    }).then(
      ({ status }) => status,
      () => 0,
    );
  for (let kill = 0; kill < 3; kill++) {
    const asked = Array.from({ length: 12 }, ask);
    // One is there, others are somewhere on their way.
    await Promise.race([upstream.next(), Promise.all(asked)]);
    place.newest.kill("SIGKILL");
    await place.newest.ended;
    await Promise.all(asked);
    await place.start();
    const client = await place.client.signIn(ADMIN.email, ADMIN.password);
    const [found] = await client.get<Budget[]>("/api/v2/ai/budgets");
    const { total } = await client.get<AiUsage>("/api/v2/ai/usage?by=user");
    expect(found?.reserved).toBe(0);
    expect(found?.spent).toBe(total.total_cost_micros);
    expect(found?.spent ?? 0).toBeLessThan(5_000 + 1_100);
  }
  void upstream.answerAll((call) => call.answer(200, { choices: [], usage: { completion_tokens: 100 } }));
  const statuses: number[] = [];
  for (let time = 0; time < 8 && statuses.at(-1) !== 429; time++) statuses.push(await ask());
  expect(statuses.at(-1)).toBe(429);
  await place.stop();
}, 60_000);
