// Chats pause when a budget is used up, ask for a raise, and then continue the same turn; over the public API.
import { expect, test } from "bun:test";
import type { Budget } from "#schema/ai/budget.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { type ChatWorld, createChat, Follower, openChatWorld } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const BUDGETS = "/api/v2/ai/budgets";

const openWorld = async (options: { clock?: ManualClock } = {}) => {
  const models = new ScriptedModels();
  // One token costs one micro.
  models.cost = { input: 1_000_000, output: 1_000_000 };
  const world = await openChatWorld({ models, ...options });
  const admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
  return { ...world, models, admin, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
};

type World = Awaited<ReturnType<typeof openWorld>>;

const setBudget = (client: Client, fields: Partial<Budget> = {}): Promise<Budget> =>
  client.put<Budget>(BUDGETS, Object.assign({ scope: "everyone", period: "day", unit: "usd", amount: 100 }, fields));

/** Answers the next call with this usage and a call of an unknown tool, so that the turn continues. */
const continueTurn = async ({ models }: Pick<ChatWorld, "models">, input_tokens: number): Promise<void> => {
  const call = await models.next();
  call
    .callTool(`c${models.calls.length}`, "no_such_tool")
    .push({ type: "usage", usage: { input_tokens } })
    .finish("tool_calls");
};
const finishTurn = async ({ models }: Pick<ChatWorld, "models">, text: string): Promise<void> => {
  (await models.next())
    .say(text)
    .push({ type: "usage", usage: { input_tokens: 1 } })
    .finish();
};

const createPausedChat = async (world: World, spentMicros = 100): Promise<{ id: string; follower: Follower }> => {
  const { id } = await createChat(world, "one");
  const follower = await Follower.open(world.owner, id);
  await continueTurn(world, spentMicros);
  await follower.until(({ status }) => status === "requires_action");
  return { id, follower };
};

testInProcess(
  "[BU-4] a turn that uses up a budget asks the people who can raise it, and continues after a raise",
  async () => {
    await using world = await openWorld();
    const { owner, admin, models } = world;
    const budget = await setBudget(admin);
    const { id, follower } = await createPausedChat(world);
    using _ = follower;
    const { budget_pause, status, last_error } = await owner.get<Chat>(`/api/v2/chats/${id}`);
    expect([status, last_error]).toEqual(["requires_action", undefined]);
    expect(budget_pause).toMatchObject({
      budget_id: budget.id,
      scope: "everyone",
      unit: "usd",
      limit: 100,
      spent: 100,
      suggested: 5_000_000,
      resets_at: budget.resets_at,
    });
    expect(budget_pause?.deciders.map(({ name }) => name)).toEqual(["admin"]);
    const callsBefore = models.calls.length;
    const historyBefore = [...follower.history];
    expect((await owner.fetch("POST", `${BUDGETS}/${budget.id}/raise`, { amount: 5 })).status).toBe(403);
    const results = { results: [{ tool_call_id: "x", output: 1 }] };
    expect((await owner.fetch("POST", `/api/v2/chats/${id}/tool-results`, results)).status).toBe(409);
    await admin.post(`${BUDGETS}/${budget.id}/raise`, { amount: 50 });
    await finishTurn(world, "done");
    await follower.until(({ status }) => status === "waiting");
    expect(models.calls.length).toBe(callsBefore + 1);
    expect(follower.history).toEqual([...historyBefore, "assistant: done"]);
  },
);

testInProcess(
  "[BU-4] a paused chat continues when its budget is replaced, removed or renewed, and an interruption ends the pause",
  async () => {
    const clock = new ManualClock(Date.UTC(2030, 0, 1, 23));
    await using world = await openWorld({ clock });
    const { owner, admin } = world;
    let usedMicros = 0;
    const resumeChat = async (resume: (budget: Budget, id: string) => Promise<unknown>): Promise<string[]> => {
      // Earlier usage counts.
      const budget = await setBudget(admin, { amount: 100 + usedMicros });
      const { id, follower } = await createPausedChat(world);
      using _ = follower;
      usedMicros += 101;
      await resume(budget, id);
      await finishTurn(world, "resumed");
      await follower.until(({ status }) => status === "waiting");
      return follower.history.slice(-2);
    };
    const resumed = ["tool: tool-result", "assistant: resumed"];
    expect(await resumeChat(() => setBudget(admin, { amount: 1_000 }))).toEqual(resumed);
    expect(await resumeChat(({ id }) => admin.delete(`${BUDGETS}/${id}`))).toEqual(resumed);
    expect(
      await resumeChat(async () => {
        clock.advance(3_600_000);
      }),
    ).toEqual(resumed);
    await setBudget(admin);
    const { id, follower } = await createPausedChat(world);
    using _ = follower;
    await owner.post(`/api/v2/chats/${id}/interrupt`);
    await follower.until(({ status }) => status === "waiting");
    expect((await owner.get<Chat>(`/api/v2/chats/${id}`)).budget_pause).toBeUndefined();
  },
);

test("[BU-6] the owner of a chat sets and raises a budget for it and its sub-chats", async () => {
  await using world = await openWorld();
  const { owner, admin } = world;
  const { id } = await createChat(world, "one");
  using follower = await Follower.open(owner, id);
  const budget = await setBudget(owner, { scope: "chat", scope_id: id, unit: "tokens", amount: 10 });
  await continueTurn(world, 10);
  await follower.until(({ status }) => status === "requires_action");
  const { budget_pause } = await owner.get<Chat>(`/api/v2/chats/${id}`);
  expect(budget_pause).toMatchObject({ scope: "chat", unit: "tokens", limit: 10, spent: 10 });
  expect(budget_pause?.deciders).toHaveLength(2);
  expect(await admin.get<Budget[]>(BUDGETS)).toMatchObject([{ id: budget.id, scope: "chat" }]);
  await owner.post(`${BUDGETS}/${budget.id}/raise`, { amount: 100_000 });
  await finishTurn(world, "done");
  await follower.until(({ status }) => status === "waiting");
});

testInProcess("[BU-4] a chat continues after a raise that arrives just before the pause is stored", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const budget = await setBudget(admin);
  const { chats } = getContext(server);
  const ask = chats.ask.bind(chats);
  chats.ask = (async (id: string, message: string, args: object) => {
    if (message === "pauseForBudget") await admin.post(`${BUDGETS}/${budget.id}/raise`, { amount: 50 });
    return ask(id, message as never, args as never);
  }) as typeof chats.ask;
  const { id } = await createChat(world, "one");
  using follower = await Follower.open(world.owner, id);
  await continueTurn(world, 100);
  await finishTurn(world, "done");
  await follower.until(({ status }) => status === "waiting");
  await until(async () => follower.history.at(-1) === "assistant: done");
});
