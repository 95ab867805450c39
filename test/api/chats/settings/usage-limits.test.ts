// Spending limits on models over the public API: who sets them, whose limit applies, and the effect of reaching one.
import { describe, expect, test } from "bun:test";
import { toPeriod } from "#actors/chat/spending/limits.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { UsageLimitStatus, UsageLimits } from "#schema/chats/usage-limit.ts";
import { Client } from "#src/client.ts";
import {
  type ChatWorld,
  createChat,
  Follower,
  openChatWorld,
  sendMessage,
  toTextContent,
} from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";

const LIMITS = "/api/v2/chats/usage-limits";
/** One token costs one micro. */
const COST = { input: 1_000_000, output: 1_000_000 };

const openWorld = async (options: { clock?: ManualClock } = {}) => {
  const models = new ScriptedModels();
  models.cost = COST;
  const world = await openChatWorld({ models, ...options });
  const admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
  return { ...world, models, admin, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
};

/** Answers the next call with this text and cost. */
const answerCall = async ({ models }: Pick<ChatWorld, "models">, text: string, input_tokens: number): Promise<void> => {
  (await models.next()).say(text).push({ type: "usage", usage: { input_tokens } }).finish();
};
const getLimitStatus = (client: Client) => client.get<UsageLimitStatus>(`${LIMITS}/status`);
const setDefaultLimit = (client: Client, spend_limit_micros: number | null, period = "month") =>
  client.put<unknown>(LIMITS, { spend_limit_micros, period });

describe("[SP-5] periods are days, weeks from Monday and months in UTC", () => {
  test.each([
    ["day", "2026-11-22T12:00:00Z", "2026-11-22", "2026-11-23"],
    ["day", "2026-12-31T23:59:59.999Z", "2026-12-31", "2027-01-01"],
    ["week", "2026-11-22T23:59:59Z", "2026-11-16", "2026-11-23"],
    ["week", "2026-11-23T00:00:00Z", "2026-11-23", "2026-11-30"],
    ["week", "2027-01-01T00:00:00Z", "2026-12-28", "2027-01-04"],
    ["month", "2026-12-05T00:00:00Z", "2026-12-01", "2027-01-01"],
    ["month", "2028-02-29T12:00:00Z", "2028-02-01", "2028-03-01"],
  ] as const)("%s of %s", (period, now, from, to) => {
    expect(toPeriod(period, Date.parse(now))).toEqual({
      from: Date.parse(`${from}T00:00:00Z`),
      to: Date.parse(`${to}T00:00:00Z`),
    });
  });
});

testInProcess(
  "[SP-6] refuses messages, edits and new chats above the limit, with its figures, until the next period",
  async () => {
    const clock = new ManualClock(Date.UTC(2030, 0, 1, 23));
    await using world = await openWorld({ clock });
    const { owner, admin } = world;
    expect(await getLimitStatus(owner)).toMatchObject({
      is_limited: false,
      spend_limit_micros: null,
      current_spend: 0,
    });
    await setDefaultLimit(admin, 100, "day");
    const { id } = await createChat(world, "one");
    using follower = await Follower.open(owner, id);
    await answerCall(world, "first", 99);
    await follower.until(({ status }) => status === "waiting");
    // One micro remains: a call that starts below the limit may end above it.
    await sendMessage(world, id, "two");
    await answerCall(world, "second", 50);
    await follower.until(({ status, history }) => status === "waiting" && history.length === 4);
    const day = { period: "day", period_start: "2030-01-01T00:00:00.000Z", period_end: "2030-01-02T00:00:00.000Z" };
    expect(await getLimitStatus(owner)).toEqual({
      is_limited: true,
      ...day,
      spend_limit_micros: 100,
      current_spend: 149,
    } as never);
    const refusal = {
      message: "The spend limit is reached.",
      spent_micros: 149,
      limit_micros: 100,
      resets_at: day.period_end,
    };
    const [firstId] = follower.messages.keys();
    for (const [method, path, body] of [
      ["POST", `/api/v2/chats/${id}/messages`, { content: toTextContent("three") }],
      ["PATCH", `/api/v2/chats/${id}/messages/${firstId}`, { content: toTextContent("three") }],
      ["POST", "/api/v2/chats", { organization_id: world.organization_id, content: toTextContent("three") }],
    ] as const) {
      const response = await owner.fetch(method, path, body);
      expect(response.status).toBe(409);
      expect(await response.json()).toMatchObject(refusal);
    }
    expect(follower.history.length).toBe(4);
    clock.advance(3_600_000);
    await sendMessage(world, id, "three");
    await answerCall(world, "third", 1);
    await follower.until(({ status, history }) => status === "waiting" && history.length === 6);
    expect(await getLimitStatus(owner)).toMatchObject({ current_spend: 1 });
  },
);

testInProcess(
  "[SP-6] [BU-4] a turn waits before its next model call until the limit is raised, and so does a queued message",
  async () => {
    await using world = await openWorld();
    const { owner, admin, models } = world;
    await setDefaultLimit(admin, 100);
    const { id } = await createChat(world, "one");
    using follower = await Follower.open(owner, id);
    const call = await models.next();
    await sendMessage(world, id, "two");
    call
      .say("first")
      .push({ type: "usage", usage: { input_tokens: 100 } })
      .finish();
    await follower.until(({ status }) => status === "requires_action");
    expect(models.calls.length).toBe(1);
    const { budget_pause } = await owner.get<Chat>(`/api/v2/chats/${id}`);
    expect(budget_pause).toMatchObject({ scope: "person", period: "month", unit: "usd", limit: 100, spent: 100 });
    expect(follower.history).toEqual(["user: one", "assistant: first", "user: two"]);
    await setDefaultLimit(admin, 200);
    await answerCall(world, "second", 1);
    await follower.until(({ status }) => status === "waiting");
    expect(follower.history.at(-1)).toBe("assistant: second");
  },
);

testInProcess(
  "[SP-5] a user's own limit applies, or else the lowest of the organizations, or else everyone's; calls without a price don't count",
  async () => {
    await using world = await openWorld();
    const { owner, admin, user_id, organization_id, models } = world;
    const getLimit = async () => (await getLimitStatus(owner)).spend_limit_micros;
    const ownLimit = `${LIMITS}/overrides/${user_id}`;
    const groupLimit = `${LIMITS}/group-overrides/${organization_id}`;
    await setDefaultLimit(admin, 300);
    expect(await getLimit()).toBe(300);
    await admin.put(groupLimit, { spend_limit_micros: 500 });
    expect(await getLimit()).toBe(500);
    await admin.put(ownLimit, { spend_limit_micros: 900 });
    expect(await getLimit()).toBe(900);
    const limits = await admin.get<UsageLimits>(LIMITS);
    expect(limits).toMatchObject({ spend_limit_micros: 300, period: "month", unpriced_model_count: 0 });
    expect(limits.overrides).toMatchObject([{ user_id, spend_limit_micros: 900 }]);
    expect(limits.group_overrides).toMatchObject([{ group_id: organization_id, spend_limit_micros: 500 }]);
    await admin.delete(ownLimit);
    expect(await getLimit()).toBe(500);
    await admin.delete(groupLimit);
    expect(await getLimit()).toBe(300);
    await expect(admin.delete(ownLimit)).rejects.toMatchObject({ status: 404 });
    for (const body of [
      { spend_limit_micros: 0 },
      { spend_limit_micros: 1, period: "day" },
      { spend_limit_micros: 1.5 },
      {},
    ]) {
      await expect(admin.put(ownLimit, body)).rejects.toMatchObject({ status: 400 });
    }
    for (const body of [
      { spend_limit_micros: 1 },
      { spend_limit_micros: 1, period: "year" },
      { spend_limit_micros: -1, period: "day" },
    ]) {
      await expect(admin.put<unknown>(LIMITS, body)).rejects.toMatchObject({ status: 400 });
    }
    const getDetail = async (path: string, body: unknown) => {
      const response = (await (await admin.fetch("PUT", path, body)).json()) as { validations?: { detail: string }[] };
      return response.validations?.[0]?.detail;
    };
    const message = "must be a whole number from 0 to 1000000000000000, or null";
    expect(await getDetail(LIMITS, { spend_limit_micros: -5, period: "day" })).toBe(message);
    expect(await getDetail(ownLimit, { spend_limit_micros: -5 })).toBe(
      "must be a whole number from 1 to 1000000000000000",
    );
    await expect(owner.put(ownLimit, { spend_limit_micros: 9 })).rejects.toMatchObject({ status: 403 });
    const unknownUser = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    await expect(admin.put(`${LIMITS}/overrides/${unknownUser}`, { spend_limit_micros: 9 })).rejects.toMatchObject({
      status: 404,
    });
    models.cost = undefined;
    const { id } = await createChat(world, "one");
    using follower = await Follower.open(owner, id);
    await answerCall(world, "first", 1_000);
    await follower.until(({ status }) => status === "waiting");
    expect(await getLimitStatus(owner)).toMatchObject({ current_spend: 0 });
    await setDefaultLimit(admin, 0);
    await expect(sendMessage(world, id, "two")).rejects.toMatchObject({ status: 409 });
    await setDefaultLimit(admin, null);
    await sendMessage(world, id, "two");
    await answerCall(world, "second", 1);
    await follower.until(({ status, history }) => status === "waiting" && history.length === 4);
  },
);

testInProcess("[SP-6] refuses messages and makes no calls while the amount spent cannot be read", async () => {
  await using world = await openWorld();
  const { owner, admin, models, server } = world;
  await setDefaultLimit(admin, 1_000);
  const { id } = await createChat(world, "one");
  using follower = await Follower.open(owner, id);
  const call = await models.next();
  const { store } = getContext(server);
  const scan = store.scan.bind(store);
  let failures = 0;
  store.scan = (async (query) => {
    if (failures < 2 && query.sql.includes("model_spend")) {
      failures += 1;
      throw new Error("the disk failed");
    }
    return scan(query);
  }) as typeof store.scan;
  await expect(sendMessage(world, id, "two")).rejects.toMatchObject({ status: 500 });
  call
    .callTool("c1", "no_such_tool")
    .push({ type: "usage", usage: { input_tokens: 1 } })
    .finish("tool_calls");
  // The first attempt at the second call could not read the amount spent; the second attempt makes the call.
  await answerCall(world, "at last", 1);
  await follower.until(({ status }) => status === "waiting");
  expect({ failures, calls: models.calls.length }).toEqual({ failures: 2, calls: 2 });
});

testInProcess("[SP-5] only administrators manage limits; users see their own", async () => {
  await using world = await openWorld();
  const member = new Client(world.server.url, (await seedUser(world.server)).token);
  await expect(member.get(LIMITS)).rejects.toMatchObject({ status: 403 });
  expect(await getLimitStatus(member)).toMatchObject({ is_limited: false });
});
