// Costs of chats, from the price of a model to the totals of a deployment, over the public API with a model server.
import { expect, test } from "bun:test";
import type { ChatMessage, MessagePage } from "#schema/chats/chat.ts";
import type { ChatCost, CostSummary, UserCosts } from "#schema/chats/chat-cost.ts";
import type { ModelConfig } from "#schema/chats/model-config.ts";
import { Client } from "#src/client.ts";
import { createChat, Follower, openChatWorld, sendMessage } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { getContext, getOwnerContext, seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const COST = { input: 3_000_000, output: 15_000_000, cache_read: 300_000 };
/** 600 new tokens, 400 from the cache, 500 of the answer. */
const USAGE = { input: 1_000, output: 500, cached: 400 };
const CALL_COST = 600 * 3 + 400 * 0.3 + 500 * 15;
const answer = (call: ModelCall): void => call.say({ text: "well" }, { finish: "stop", usage: USAGE }).end();
const getCost = (client: Client, id: string) => client.get<ChatCost>(`/api/v2/chats/${id}/cost`);
const listAnswers = async (client: Client, id: string): Promise<ChatMessage[]> => {
  const { messages } = await client.get<MessagePage>(`/api/v2/chats/${id}/messages`);
  return messages.filter(({ role }) => role === "assistant").reverse();
};

test("[SP-2] [SP-3] each message keeps the cost at its time, and has none without a price", async () => {
  await using world = await openModelWorld();
  const { owner, upstream } = world;
  const { model } = await addModel(world, "openai-compat", { model_config: { cost: COST } });
  expect(model.price).toEqual({ ...COST, source: "model" });
  const path = `/api/v2/chats/model-configs/${model.id}`;
  const withUnknownMember = { ...COST, cache_reads: 1 };
  for (const cost of [
    withUnknownMember,
    { input: 1 },
    { ...COST, input: -1 },
    { ...COST, output: 0.5 },
    { ...COST, input: 2e12 },
  ]) {
    await expect(owner.patch(path, { model_config: { cost } })).rejects.toMatchObject({ status: 400 });
  }
  const { id } = await createChat(world, "one");
  using follower = await Follower.open(owner, id);
  answer(await upstream.next());
  await follower.until(({ status }) => status === "waiting");
  await owner.patch(path, { model_config: { cost: { ...COST, output: 30_000_000 } } });
  await sendMessage(world, id, "two");
  answer(await upstream.next());
  await follower.until(({ status, history }) => status === "waiting" && history.length === 4);
  const changed = await owner.patch<ModelConfig>(path, { model_config: {} });
  expect(changed.price).toBeUndefined();
  await sendMessage(world, id, "three");
  answer(await upstream.next());
  await follower.until(({ status, history }) => status === "waiting" && history.length === 6);
  const answers = await listAnswers(owner, id);
  expect(answers.map(({ cost_micros }) => cost_micros)).toEqual([CALL_COST, CALL_COST + 7_500, undefined]);
  expect(answers[0]?.usage).toMatchObject({ input_tokens: 600, cache_read_tokens: 400, output_tokens: 500 });
  expect(answers[0]?.usage).not.toHaveProperty("cost_micros");
  const total = { total_cost_micros: 2 * CALL_COST + 7_500, request_count: 3, unpriced_request_count: 1 };
  const tokens = { input_tokens: 1_800, output_tokens: 1_500, cache_read_tokens: 1_200, cache_creation_tokens: 0 };
  const cost = await getCost(owner, id);
  const modelMembers = {
    model_config_id: model.id,
    provider: "openai-compat",
    model: "test-model",
    display_name: "test-model",
  };
  expect(cost).toMatchObject({ chat_id: id, ...total, ...tokens, by_model: [{ ...modelMembers, ...total }] });
  expect(cost.turns.map((turn) => [turn.cost_micros, turn.request_count, turn.unpriced_request_count])).toEqual([
    [null, 1, 1],
    [CALL_COST + 7_500, 1, 0],
    [CALL_COST, 1, 0],
  ]);
});

test("[SP-3] the cost of a chat includes its sub-chats, and is the same from each of them", async () => {
  await using world = await openModelWorld();
  const { owner, upstream } = world;
  const { model } = await addModel(world, "openai-compat", { model_config: { cost: COST } });
  const { id } = await createChat(world, "find it");
  using follower = await Follower.open(owner, id);
  const prompt = { type: "explore", prompt: "look for it", model_config_id: model.id };
  const spawn = { id: "c1", name: "spawn_agent", args: JSON.stringify(prompt) };
  (await upstream.next()).say({ call: spawn }, { finish: "tool_calls", usage: USAGE }).end();
  for (let call = 0; call < 2; call++) answer(await upstream.next());
  await follower.until(({ status }) => status === "waiting");
  const { children } = await owner.get<{ children: { id: string }[] }>(`/api/v2/chats/${id}`);
  const child = children[0]?.id ?? "";
  using childFollower = await Follower.open(owner, child);
  await childFollower.until(({ status }) => status === "waiting");
  const sums = { total_cost_micros: 3 * CALL_COST, request_count: 3, unpriced_request_count: 0 };
  const treeCost = await getCost(owner, id);
  expect(treeCost).toMatchObject({ chat_id: id, ...sums });
  expect(treeCost.turns).toMatchObject([{ cost_micros: 2 * CALL_COST, request_count: 2 }]);
  expect(await getCost(owner, child)).toMatchObject({ chat_id: child, ...sums, turns: [{ cost_micros: CALL_COST }] });
});

testInProcess(
  "[SP-3] [SP-4] costs include titles, labels and failures, and outlive the chat; users see only their own, administrators all",
  async () => {
    const models = new ScriptedModels(true);
    models.cost = COST;
    await using world = await openChatWorld({ models, env: { SLIPWAY_CHAT_TITLES: "true" } });
    const { owner, server, user_id } = world;
    const { id } = await createChat(world, "please find out why the nightly deployment of the api keeps failing");
    using follower = await Follower.open(owner, id);
    const usage = { input_tokens: 100, output_tokens: 10 };
    for (const text of ["an answer", "Failing deployment", "found it"]) {
      (await models.next()).say(text).push({ type: "usage", usage }).finish();
    }
    await getContext(server).titles.whenIdle();
    await follower.until(({ status }) => status === "waiting");
    const costPerCall = 100 * 3 + 10 * 15;
    expect(await getCost(owner, id)).toMatchObject({
      total_cost_micros: 3 * costPerCall,
      turns: [{ cost_micros: costPerCall }],
    });
    await sendMessage(world, id, "more");
    (await models.next()).say("hm").push({ type: "usage", usage }).fail("content_filter");
    (await models.next()).say("declined").finish();
    await follower.until(({ status }) => status === "error");
    await getContext(server).titles.whenIdle();
    const sums = { total_cost_micros: 4 * costPerCall, request_count: 4, unpriced_request_count: 0, input_tokens: 400 };
    expect(await getCost(owner, id)).toMatchObject(sums);
    await owner.delete(`/api/v2/chats/${id}`);

    const summary = await owner.get<CostSummary>("/api/v2/chats/cost/me/summary");
    expect(summary).toMatchObject({ user_id, ...sums, priced_request_count: 4 });
    expect(summary.by_chat).toMatchObject([{ root_chat_id: id, total_cost_micros: 4 * costPerCall }]);
    expect(summary.by_month).toMatchObject([
      { month: summary.end_date.slice(0, 7), total_cost_micros: 4 * costPerCall },
    ]);
    const getSummary = (query: string) => owner.get<CostSummary>(`/api/v2/chats/cost/me/summary?${query}`);
    expect((await getSummary("month=2020-02")).request_count).toBe(0);
    expect(await getSummary("month=2020-02")).toMatchObject({
      start_date: "2020-02-01T00:00:00.000Z",
      end_date: "2020-03-01T00:00:00.000Z",
    });
    expect((await getSummary("start_date=2020-01-01&end_date=2099-01-01T00:00:00Z")).request_count).toBe(4);
    for (const invalid of [
      "month=2020-13",
      "month=9999-12",
      "month=0001-01",
      "month=2020-01&end_date=2020-02-01",
      "start_date=x",
      "start_date=2020-02-01&end_date=2020-01-01",
    ]) {
      await expect(getSummary(invalid)).rejects.toMatchObject({ status: 400 });
    }

    const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const otherUser = new Client(server.url, (await seedUser(server)).token);
    await expect(otherUser.get(`/api/v2/chats/cost/${user_id}/summary`)).rejects.toMatchObject({ status: 404 });
    await expect(owner.get("/api/v2/chats/cost/users")).rejects.toMatchObject({ status: 403 });
    expect((await admin.get<CostSummary>(`/api/v2/chats/cost/${user_id}/summary`)).total_cost_micros).toBe(
      4 * costPerCall,
    );
    const userCosts = await admin.get<UserCosts>("/api/v2/chats/cost/users?limit=1");
    expect(userCosts).toMatchObject({ count: 1, users: [{ user_id, ...sums, chat_count: 1 }] });
    expect(await admin.get<UserCosts>("/api/v2/chats/cost/users?search=no%20such%20user")).toMatchObject({
      count: 0,
      users: [],
    });
  },
);

testInProcess(
  "[SP-3] requests an answer again whose usage cannot be stored, and stores no message for it",
  async () => {
    await using world = await openChatWorld();
    const { owner, server, models, user_id } = world;
    const { store } = getOwnerContext(server, user_id);
    const commit = store.commit.bind(store);
    let isFull = true;
    store.commit = (async (batch, ...more) => {
      if (isFull && batch.some(({ sql }) => sql.includes("model_spend"))) {
        isFull = false;
        throw new Error("no room");
      }
      return commit(batch, ...more);
    }) as typeof store.commit;
    const { id } = await createChat(world, "one");
    using follower = await Follower.open(owner, id);
    for (const text of ["lost", "kept"]) {
      (await models.next())
        .say(text)
        .push({ type: "usage", usage: { input_tokens: 1 } })
        .finish();
    }
    await follower.until(({ status }) => status === "waiting");
    expect(follower.history).toEqual(["user: one", "assistant: kept"]);
    expect((await getCost(owner, id)).request_count).toBe(1);
  },
);

testInProcess("[BU-8] charges an answer without reported usage by estimate, and an empty one not at all", async () => {
  const models = new ScriptedModels(true);
  models.cost = COST;
  await using world = await openChatWorld({ models });
  const { owner } = world;
  const { id } = await createChat(world, "please find out why the nightly deployment of the api keeps failing");
  using follower = await Follower.open(owner, id);
  (await models.next()).fail("content_filter");
  await follower.until(({ status }) => status === "error");
  expect(await getCost(owner, id)).toMatchObject({ request_count: 0 });
  await sendMessage(world, id, "more");
  const call = await models.next();
  await follower.until(({ status }) => status === "running");
  call.say("x".repeat(400)).fail("content_filter");
  await follower.until(({ status }) => status === "error");
  const { request_count, output_tokens, input_tokens } = await getCost(owner, id);
  expect({ request_count, output_tokens }).toEqual({ request_count: 1, output_tokens: 100 });
  expect(input_tokens).toBeGreaterThan(20);
});

test("[BU-11] charges the usage that a provider reports after an interruption, without making the chat wait", async () => {
  await using world = await openModelWorld();
  const { owner, upstream } = world;
  await addModel(world, "openai", { model: "gpt-5", model_config: { cost: COST } });
  const { id } = await createChat(world, "one");
  using follower = await Follower.open(owner, id);
  const interruptedCall = await upstream.next();
  interruptedCall.say({ text: "the whole answer" });
  await follower.until(({ preview }) => preview === "the whole answer");
  await owner.post(`/api/v2/chats/${id}/interrupt`);
  await follower.until(({ status }) => status === "waiting");
  await sendMessage(world, id, "two");
  answer(await upstream.next());
  await follower.until(({ status, history }) => status === "waiting" && history.length === 4);
  expect(await getCost(owner, id)).toMatchObject({ request_count: 1, total_cost_micros: CALL_COST });
  interruptedCall.say({ finish: "stop", usage: { input: 1_000, output: 50_000, cached: 400, thought: 49_990 } }).end();
  const finalCost = await until(async () => {
    const cost = await getCost(owner, id);
    return cost.request_count === 2 && cost;
  });
  expect(finalCost).toMatchObject({ output_tokens: 50_500, total_cost_micros: 2 * CALL_COST + 49_500 * 15 });
});

testInProcess(
  "[BU-11] charges the reserved output when no usage arrives within a minute of an interruption",
  async () => {
    const clock = new ManualClock();
    const models = new ScriptedModels();
    models.cost = COST;
    await using world = await openChatWorld({ models, clock });
    const { owner } = world;
    const { id } = await createChat(world, "one");
    using follower = await Follower.open(owner, id);
    (await models.next()).say("the whole answer");
    await follower.until(({ preview }) => preview === "the whole answer");
    await owner.post(`/api/v2/chats/${id}/interrupt`);
    await follower.until(({ status }) => status === "waiting");
    const cost = await until(async () => {
      clock.advance(5_000);
      const cost = await getCost(owner, id);
      return cost.request_count === 1 && cost;
    });
    expect(cost.output_tokens).toBe(16_384);
  },
);
