// The AI gateway when providers fail and when users reach a limit.
import { describe, expect, test } from "bun:test";
import type { AiUsage } from "#schema/ai/gateway.ts";
import { testInProcess } from "#test/support/in-process.ts";
import {
  delta,
  type GatewayWorld,
  listGatewayCalls,
  openai,
  openGatewayWorld,
  PRICE,
  putGatewaySettings,
  USAGE,
} from "#test/support/models/gateway-world.ts";
import { addModel, MODEL_KEY } from "#test/support/models/model-world.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

describe("providers that fail", () => {
  test("[GW-4] calls the next target when one is overloaded or unreachable; the ledger names the one that answered", async () => {
    await using world = await openGatewayWorld();
    const { provider } = await addModel(world, "openai");
    const unreachable = await world.owner.post<{ id: string }>("/api/v2/chats/providers", {
      provider: "openai",
      display_name: "Away",
      base_url: "http://127.0.0.1:9/v1",
      api_key: "k-away-0123456789",
    });
    const targets = [
      { provider_id: unreachable.id, model: "a" },
      { provider_id: provider.id, model: "b" },
      { provider_id: provider.id, model: "c" },
    ];
    await putGatewaySettings(world.owner, { names: [{ name: "best", targets }] });
    const pendingResponse = openai(world).chat.completions.create({
      model: "best",
      messages: [{ role: "user", content: "hello" }],
    });
    const secondCall = await world.upstream.next();
    expect(secondCall.body.model).toBe("b");
    secondCall.answer(529, { error: { message: "overloaded" } });
    const thirdCall = await world.upstream.next();
    expect(thirdCall.body.model).toBe("c");
    thirdCall.answer(200, { model: "c", choices: [], usage: USAGE });
    expect((await pendingResponse).usage).toMatchObject(USAGE);
    expect(await listGatewayCalls(world.owner)).toMatchObject([
      { asked_model: "best", model: "c", outcome: "ok", output_tokens: 3 },
    ]);
  });

  test("[GW-3] forwards errors with their status and without the key; refused credentials become a 502", async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "openai");
    const client = openai(world);
    const badRequest = client.chat.completions.create({
      model: "test-model",
      messages: [{ role: "user", content: "hello" }],
    });
    (await world.upstream.next()).answer(
      400,
      { error: { message: `no such thing for ${MODEL_KEY}`, code: "bad" } },
      { "retry-after": "7" },
    );
    const refused = await badRequest.catch((error) => error as { status: number; message: string; headers: Headers });
    expect(refused).toMatchObject({ status: 400 });
    expect(JSON.stringify(refused)).not.toContain(MODEL_KEY);
    const unauthorized = client.chat.completions.create({
      model: "test-model",
      messages: [{ role: "user", content: "hello" }],
    });
    (await world.upstream.next()).answer(401, { error: { message: `Incorrect API key provided: ${MODEL_KEY}` } });
    const error = await unauthorized.catch((reason) => reason as { status: number; message: string });
    expect(error).toMatchObject({ status: 502, code: "provider_credentials" });
    expect(JSON.stringify(error)).not.toContain(MODEL_KEY);
    expect((await listGatewayCalls(world.owner)).map(({ outcome, cost_micros }) => [outcome, cost_micros])).toEqual([
      ["failed", 0],
      ["failed", 0],
    ]);
  });

  test("[GW-2] repeats a call without usage options for a server that refuses them, and estimates the usage", async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "openai-compat");
    const pendingResponse = openai(world).chat.completions.create({
      model: "test-model",
      stream: true,
      messages: [{ role: "user", content: "hello" }],
    });
    (await world.upstream.next()).answer(400, { detail: "Extra inputs are not permitted: stream_options" });
    const call = await world.upstream.next();
    expect(call.body.stream_options).toBeUndefined();
    call.sendRaw(delta("some words of an answer")).sendRaw("data: [DONE]\n\n").end();
    for await (const part of await pendingResponse) expect(part.choices).toHaveLength(1);
    const [row] = await listGatewayCalls(world.owner);
    expect(row).toMatchObject({ outcome: "ok", is_estimated: true });
    expect(row?.output_tokens).toBeGreaterThan(0);
  });

  testInProcess(
    "[GW-5] [GW-19] charges a caller that disconnects the last usage that the provider reports, not the first",
    async () => {
      await using world = await openGatewayWorld();
      await addModel(world, "anthropic", PRICE);
      const caller = new AbortController();
      const pendingResponse = fetch(`${world.base}/anthropic/v1/messages`, {
        method: "POST",
        signal: caller.signal,
        headers: { "x-api-key": world.token },
        body: JSON.stringify({
          model: "test-model",
          stream: true,
          max_tokens: 9,
          messages: [{ role: "user", content: "hello" }],
        }),
      });
      const call = await world.upstream.next();
      const start = { type: "message_start", message: { usage: { input_tokens: 50, output_tokens: 1 } } };
      call.sendRaw(`event: message_start\ndata: ${JSON.stringify(start)}\n\n`);
      await (await pendingResponse).body?.getReader().read();
      caller.abort();
      await until(() => getContext(world.server).ledger.answers.draining === 1);
      call.sendRaw(`data: ${JSON.stringify({ type: "message_delta", usage: { output_tokens: 40 } })}\n\n`).end();
      const row = await until(async () => (await listGatewayCalls(world.owner))[0]);
      expect(row).toMatchObject({ outcome: "aborted", input_tokens: 50, output_tokens: 40, is_estimated: false });
    },
  );

  test("[GW-5] a stream that breaks off ends the caller's stream, and the ledger records the call as failed", async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "openai", PRICE);
    const pendingResponse = openai(world).chat.completions.create({
      model: "test-model",
      stream: true,
      messages: [{ role: "user", content: "hello" }],
    });
    const call = await world.upstream.next();
    call.sendRaw(delta("half an ans"));
    const reading = (async () => {
      for await (const part of await pendingResponse) expect(part.choices).toHaveLength(1);
    })();
    call.resetConnection();
    await reading.catch(() => {});
    const row = await until(async () => (await listGatewayCalls(world.owner))[0]);
    expect(row?.outcome).toBe("failed");
  });
});

describe("limits", () => {
  const setSpendLimit = (world: GatewayWorld, micros: number) =>
    world.owner.put("/api/v2/chats/usage-limits", { spend_limit_micros: micros, period: "month" });

  test("[GW-6] starts only as many of twenty concurrent calls as the limit allows, and at most one exceeds it", async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "openai", PRICE);
    await setSpendLimit(world, 1_000);
    void world.upstream.answerAll((call) =>
      call.answer(200, { model: "test-model", choices: [], usage: { prompt_tokens: 0, completion_tokens: 30 } }),
    );
    const client = openai(world);
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, () =>
        client.chat.completions.create({
          model: "test-model",
          max_tokens: 30,
          messages: [{ role: "user", content: "hello" }],
        }),
      ),
    );
    const refusals = results
      .filter((result) => result.status === "rejected")
      .map((result) => result.reason as { status: number; code: string });
    expect(new Set(refusals.map(({ status, code }) => `${status} ${code}`))).toEqual(new Set(["429 budget_exceeded"]));
    const { total } = await world.owner.get<AiUsage>("/api/v2/ai/usage?by=model");
    expect(total.request_count).toBe(20 - refusals.length);
    // A call costs 300 and reserves somewhat more.
    expect(total.total_cost_micros).toBeGreaterThan(0);
    expect(total.total_cost_micros).toBeLessThanOrEqual(1_000 + 330);
  });

  test("[GW-6] refuses a model without a price that only the caller has named, while a limit in dollars applies", async () => {
    await using world = await openGatewayWorld();
    const { provider } = await addModel(world, "openai", PRICE);
    const ownModel = await addModel(world, "openai-compat", {}, "Own");
    await putGatewaySettings(world.owner, {
      names: [
        { name: "own-*", targets: [{ provider_id: ownModel.provider.id }] },
        { name: "mapped", targets: [{ provider_id: provider.id, model: "o1-pro" }] },
        { name: "*", targets: [{ provider_id: provider.id }] },
      ],
    });
    void world.upstream.answerAll((call) => call.answer(200, { choices: [], usage: { prompt_tokens: 1 } }));
    const ask = async (model: string): Promise<string> => {
      const messages = [{ role: "user" as const, content: "hello" }];
      const pendingResponse = openai(world).chat.completions.create({ model, messages });
      return pendingResponse.then(() => "ok").catch(({ status, code }) => `${status} ${code}`);
    };
    expect(await ask("o1-pro")).toBe("ok");
    await setSpendLimit(world, 100_000_000);
    for (const model of ["o1-pro", "GPT-5", "gpt-4o-2024-11-20"])
      expect([model, await ask(model)]).toEqual([model, "403 model_without_price"]);
    // A model with a list price, one with an administrator's price, one that an administrator named, and one that may be self-hosted.
    for (const model of ["gpt-5-mini", "test-model", "mapped", "own-model"])
      expect([model, await ask(model)]).toEqual([model, "ok"]);
  });

  test("[GW-9] refuses a body that is too large before it calls a provider", async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "anthropic");
    const response = await fetch(`${world.base}/anthropic/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": world.token },
      body: new Uint8Array(65 * 1024 * 1024),
    });
    expect([response.status, await response.json()]).toMatchObject([413, { error: { type: "request_too_large" } }]);
    expect(world.upstream.connections).toBe(0);
  });
});
