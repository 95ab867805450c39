// The ledger of model calls when the server is killed during calls.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Budget } from "#schema/ai/budget.ts";
import type { AiUsage, GatewayCalls } from "#schema/ai/gateway.ts";
import type { Client } from "#src/client.ts";
import { createGatewayToken, listGatewayCalls, putGatewaySettings } from "#test/support/models/gateway-world.ts";
import { ModelServer } from "#test/support/models/model-server.ts";
import { addModel, MODEL_KEY } from "#test/support/models/model-world.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { readStoredTexts } from "#test/support/stored.ts";
import { until } from "#test/support/until.ts";
import { ServerSlot } from "../server.ts";

/** Number of kills during calls. The figures in the documentation come from 30 kills. */
const KILLS = Number(Bun.env.SLIPWAY_TEST_GATEWAY_KILLS ?? 3);
/** Maximum reservation of a call, in millionths of a dollar. */
const MAX_RESERVED = 10_100;

test("[GW-3] [GW-5] [GW-6] [GW-11] when the server is killed during calls, the ledger keeps reported and reserved usage once per call", async () => {
  await using upstream = await ModelServer.start();
  await using place = await ServerSlot.make();
  await place.start();
  const owner = await place.client.signIn(ADMIN.email, ADMIN.password);
  const cost = { input: 1_000_000, output: 10_000_000 };
  await addModel({ owner, upstream }, "anthropic", { model_config: { cost } });
  await putGatewaySettings(owner);
  const token = await createGatewayToken(owner);
  const callModel = (max_tokens: number) =>
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
  const completeCall = callModel(7);
  const first = await upstream.next();
  const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
  first.sendRaw(event({ type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } }));
  first.sendRaw(event({ type: "message_delta", usage: { output_tokens: 7 } })).end();
  expect(await (await completeCall).text()).toContain("message_delta");
  const tornCall = callModel(9);
  const broken = (await upstream.next()).sendRaw(event({ type: "message_start", message: {} }));
  const reader = (await tornCall).body?.getReader();
  await reader?.read();
  broken.resetConnection();
  const readToEnd = async (): Promise<string> => {
    while (!(await reader?.read())?.done);
    return "complete";
  };
  expect(await readToEnd().catch(() => "cut")).toBe("cut");
  // The log has one line, and the runtime prints nothing.
  const logged = await until(
    () => place.currentProcess.errors.includes("was interrupted") && place.currentProcess.errors,
  );
  expect(logged.trim().split("\n")).toHaveLength(1);
  const open = [callModel(100), callModel(200)];
  for (const _ of open) (await upstream.next()).sendRaw(event({ type: "message_start", message: {} }));
  for (const call of open) expect((await call).status).toBe(200);
  // Other users of the machine cannot read the provider's key, neither during calls nor after a crash.
  const processFiles = ["environ", "cmdline"].map((name) =>
    readFileSync(`/proc/${place.currentProcess.child.pid}/${name}`, "latin1"),
  );
  place.currentProcess.kill("SIGKILL");
  const { errors } = await place.currentProcess.ended;
  expect(
    [...processFiles, errors, ...(await readStoredTexts(place.directory))].some((text) => text.includes(MODEL_KEY)),
  ).toBe(false);
  for (let start = 0; start < 2; start++) {
    await place.start();
    const calls = await listGatewayCalls(await place.client.signIn(ADMIN.email, ADMIN.password));
    expect(calls.map(({ outcome }) => outcome).sort()).toEqual(["failed", "lost", "lost", "ok"]);
    expect(calls.find(({ outcome }) => outcome === "ok")).toMatchObject({ output_tokens: 7, cost_micros: 73 });
    const lost = calls.filter(({ outcome }) => outcome === "lost").map(({ cost_micros }) => cost_micros ?? 0);
    // The longest possible answers cost 1,000 and 2,000, the prompts a little.
    expect(lost.map((micros) => Math.floor(micros / 1_000)).sort()).toEqual([1, 2]);
    await place.stop();
  }
});

test(
  "[BU-2] [BU-5] after repeated kills with many open calls, a budget is exceeded by at most one reservation and nothing stays reserved",
  async () => {
    await using upstream = await ModelServer.start();
    await using place = await ServerSlot.make();
    await place.start();
    const owner = await place.client.signIn(ADMIN.email, ADMIN.password);
    await addModel({ owner, upstream }, "openai", { model_config: { cost: { input: 1_000_000, output: 10_000_000 } } });
    await putGatewaySettings(owner);
    const token = await createGatewayToken(owner);
    let amount = 2 * MAX_RESERVED;
    const budget = { scope: "everyone", period: "month", unit: "usd", amount } as const;
    await owner.put("/api/v2/ai/budgets", budget);
    // Each call uses a different number of tokens, which is below its reservation.
    let callCount = 0;
    const reported = new Map<number, "sent" | "received">();
    const callModel = async (): Promise<number> => {
      const tokens = ++callCount;
      const body = { model: "test-model", stream: true, max_tokens: 1_000, seed: tokens, messages: [] };
      try {
        const response = await fetch(`http://127.0.0.1:${place.port}/api/v2/ai/openai/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${token}` },
          body: JSON.stringify(body),
        });
        if ((await response.text()).includes("[DONE]")) reported.set(tokens, "received");
        return response.status;
      } catch {
        return 0;
      }
    };
    void upstream.answerAll((call) => {
      const tokens = Number(call.body.seed);
      call.sendRaw(`data: ${JSON.stringify({ choices: [], usage: { completion_tokens: tokens } })}\n\n`);
      // A third of the calls stay open until the server is killed.
      if (tokens % 3 === 0) return;
      reported.set(tokens, "sent");
      call.sendRaw("data: [DONE]\n\n").end();
    });
    for (let kill = 0; kill < KILLS; kill++) {
      const calls = Array.from({ length: 12 }, callModel);
      await Promise.race([Promise.all(calls), Bun.sleep(kill % 10)]);
      if (kill % 3 === 0) await Promise.race(calls);
      place.currentProcess.kill("SIGKILL");
      await place.currentProcess.ended;
      await Promise.all(calls);
      await place.start();
      const client = await place.client.signIn(ADMIN.email, ADMIN.password);
      const [spentBudget] = await client.get<Budget[]>("/api/v2/ai/budgets");
      const { total } = await client.get<AiUsage>("/api/v2/ai/usage?by=user");
      expect(spentBudget?.reserved).toBe(0);
      expect(spentBudget?.spent).toBe(total.total_cost_micros);
      await expectExactLedger(client, reported);
      expect(spentBudget?.spent ?? 0).toBeLessThan(amount + MAX_RESERVED);
      // Two maximum reservations are left for the next round.
      amount = (spentBudget?.spent ?? 0) + 2 * MAX_RESERVED;
      await client.put("/api/v2/ai/budgets", Object.assign(budget, { amount }));
    }
    await owner.put("/api/v2/ai/budgets", Object.assign(budget, { amount: 1 }));
    expect(await callModel()).toBe(429);
    await place.stop();
  },
  scaleTimeout(60_000 + KILLS * 5_000),
);

/**
 * Checks that the ledger has each completely received call once, and that the provider has reported each call that the ledger has as
 * complete.
 */
const expectExactLedger = async (client: Client, reported: ReadonlyMap<number, "sent" | "received">): Promise<void> => {
  const counted: number[] = [];
  let query = "";
  do {
    const page = await client.get<GatewayCalls>(`/api/v2/ai/calls${query}`);
    counted.push(...page.calls.filter(({ outcome }) => outcome === "ok").map(({ output_tokens }) => output_tokens));
    query = page.next_before === undefined ? "" : `?before=${page.next_before}`;
  } while (query !== "");
  expect(new Set(counted).size).toBe(counted.length);
  expect(counted.filter((tokens) => !reported.has(tokens))).toEqual([]);
  const received = [...reported].filter(([, state]) => state === "received").map(([tokens]) => tokens);
  expect(received.filter((tokens) => !counted.includes(tokens))).toEqual([]);
};
