// Recorded model calls: when they are recorded, what they contain, who can read them, and that recording delays nothing.
import { expect } from "bun:test";
import { MAX_RECORD_BYTES, redactSecrets, toRecordable } from "#actors/chat/background/record-text.ts";
import { MAX_RECORDED_STEPS } from "#actors/chat/background/recorder.ts";
import { interruptOpenRuns } from "#db/chats/runs.ts";
import type { ChatCost } from "#schema/chats/chat-cost.ts";
import type { ChatRun, ChatRunWithSteps } from "#schema/chats/chat-debug.ts";
import { Client } from "#src/client.ts";
import { type ChatWorld, createChat, Follower, openChatWorld, sendMessage } from "#test/support/chats.ts";
import { testInside } from "#test/support/inside.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { createCallWaiter } from "#test/support/models/side-calls.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { getContext, getOwnerContext, seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";

const CONFIG = "/api/v2/chats/config";
const FORCED = { env: { SLIPWAY_CHAT_DEBUG_LOGGING: "true" } };
const listRuns = (client: Client, id: string) => client.get<ChatRun[]>(`/api/v2/chats/${id}/debug/runs`);
const getRun = (client: Client, id: string, run: string) =>
  client.get<ChatRunWithSteps>(`/api/v2/chats/${id}/debug/runs/${run}`);
const signInAdmin = (world: ChatWorld) => new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);

/** Resolves when everything committed so far can be read. */
const awaitRuns = async (world: ChatWorld, id: string, ends: number): Promise<ChatRun[]> => {
  const { store } = getContext(world.server);
  for (;;) {
    const runs = await listRuns(world.owner, id);
    if (runs.filter(({ status }) => status !== "in_progress").length >= ends) return runs;
    // The record is written in the background: each empty commit lets earlier submissions through.
    await store.commit([interruptOpenRuns(-1)].map((one) => ({ ...one, sql: `${one.sql} and false` })));
  }
};
const turn = async (world: ChatWorld, text: string): Promise<string> => {
  const { id } = await createChat(world, text);
  using follower = await Follower.open(world.owner, id);
  (await world.models.next())
    .say("an answer")
    .push({ type: "usage", usage: { input_tokens: 3 } })
    .finish();
  await follower.until(({ status }) => status === "waiting");
  return id;
};

testInside(
  "[RM-1] calls are recorded only if the deployment requires it, or an administrator allows and the user wants it",
  async () => {
    await using world = await openChatWorld();
    const admin = await signInAdmin(world);
    expect(await listRuns(world.owner, await turn(world, "not recorded"))).toEqual([]);
    await admin.put(`${CONFIG}/debug-logging`, { allow_users: true });
    expect(await listRuns(world.owner, await turn(world, "allowed only"))).toEqual([]);
    await world.owner.put(`${CONFIG}/user-debug-logging`, { debug_logging_enabled: true });
    const recorded = await turn(world, "wanted");
    expect((await awaitRuns(world, recorded, 1)).length).toBe(1);
    await admin.put(`${CONFIG}/debug-logging`, { allow_users: false });
    expect(await listRuns(world.owner, await turn(world, "no longer allowed"))).toEqual([]);
    await using forced = await openChatWorld(FORCED);
    expect((await awaitRuns(forced, await turn(forced, "forced"), 1)).length).toBe(1);
  },
);

testInside("[RM-2] a run shows the model's requests and answers, step by step; newest runs first", async () => {
  await using world = await openChatWorld(FORCED);
  const unsafe_dynamic_tools = [{ name: "ask", description: "asks", input_schema: {} }];
  const { id } = await createChat(world, "first", { unsafe_dynamic_tools });
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).fail("auth", { status_code: 401 });
  await follower.until(({ status }) => status === "error");
  await awaitRuns(world, id, 1);
  const { message } = await sendMessage(world, id, "second");
  const call = await world.models.next();
  call
    .callTool("c", "unknown")
    .push({ type: "usage", usage: { input_tokens: 3, output_tokens: 4 } })
    .finish("tool_calls");
  (await world.models.next()).say("done").finish();
  await follower.until(({ status }) => status === "waiting");
  const [newest, oldest] = await awaitRuns(world, id, 2);
  expect(newest).toMatchObject({
    chat_id: id,
    kind: "chat_turn",
    status: "completed",
    provider: "scripted",
    summary: "2 model calls",
    trigger_message_id: message?.id as number,
    history_tip_message_id: message?.id as number,
  });
  expect(oldest).toMatchObject({ status: "error", summary: "1 model call" });
  const { steps, ...run } = await getRun(world.owner, id, newest?.id as string);
  expect(run).toEqual(newest as ChatRun);
  expect(steps.map(({ step_number, operation, status }) => [step_number, operation, status])).toEqual([
    [1, "stream", "completed"],
    [2, "stream", "completed"],
  ]);
  const [one, two] = steps;
  expect(one?.usage).toEqual({ input_tokens: 3, output_tokens: 4 });
  expect(one?.request).toMatchObject({
    tools: expect.arrayContaining([expect.objectContaining({ name: "ask", description: "asks" })]),
  });
  expect(JSON.stringify(one?.request)).toContain("second");
  expect(one?.response).toMatchObject({
    content: [{ type: "tool-call", tool_name: "unknown" }],
    finish: "tool_calls",
  });
  expect(two?.response).toMatchObject({ content: [{ type: "text", text: "done" }], finish: "stop" });
  const failed = await getRun(world.owner, id, oldest?.id as string);
  expect(failed.steps).toMatchObject([{ status: "error", error: { kind: "auth", status_code: 401 } }]);
  const older = await world.owner.get<ChatRun[]>(`/api/experimental/chats/${id}/debug/runs`);
  expect(older.map((found) => found.id)).toEqual([newest?.id as string, oldest?.id as string]);
});

testInside("[RM-9] model calls in addition to the turns are recorded by kind", async () => {
  const models = new ScriptedModels(true);
  await using world = await openChatWorld({ models, env: { ...FORCED.env, SLIPWAY_CHAT_TITLES: "true" } });
  const { id } = await createChat(world, "a first message of more than six words");
  const take = createCallWaiter(models);
  const turn = await take("turn");
  (await take("title"))
    .say("A title")
    .push({ type: "usage", usage: { input_tokens: 3 } })
    .finish();
  await awaitRuns(world, id, 1);
  turn.say("an answer").finish();
  (await take("label")).fail("auth");
  const runs = await awaitRuns(world, id, 3);
  expect(Object.fromEntries(runs.map(({ kind, status }) => [kind, status]))).toEqual({
    chat_turn: "completed",
    title_generation: "completed",
    quickgen: "error",
  });
  const titled = runs.find(({ kind }) => kind === "title_generation");
  const { steps } = await getRun(world.owner, id, titled?.id as string);
  expect(steps).toMatchObject([
    {
      operation: "generate",
      status: "completed",
      usage: { input_tokens: 3 },
      response: { content: [{ text: "A title" }] },
    },
  ]);
});

testInside(
  "[RM-3] an interrupted turn is recorded as such, one that a stop has cut off after the next start",
  async () => {
    await using world = await openChatWorld(FORCED);
    const { id } = await createChat(world, "go");
    using follower = await Follower.open(world.owner, id);
    (await world.models.next()).say("half");
    await follower.until(({ preview }) => preview === "half");
    expect((await listRuns(world.owner, id)).map(({ status }) => status)).toEqual(["in_progress"]);
    await world.owner.post(`/api/v2/chats/${id}/interrupt`);
    const [run] = await awaitRuns(world, id, 1);
    expect(run?.status).toBe("interrupted");
    const { steps } = await getRun(world.owner, id, run?.id as string);
    expect(steps).toMatchObject([{ status: "interrupted", response: { content: [{ type: "text", text: "half" }] } }]);
    const { id: other } = await createChat(world, "again");
    using second = await Follower.open(world.owner, other);
    (await world.models.next()).say("x");
    await second.until(({ preview }) => preview === "x");
    await getContext(world.server).store.commit([interruptOpenRuns(1)]);
    expect((await listRuns(world.owner, other)).map(({ status }) => status)).toEqual(["interrupted"]);
  },
);

testInside(
  "[RM-4] runs are for the chat's owner and the deployment's owner: readers get 403, other users and other chats 404",
  async () => {
    await using world = await openChatWorld(FORCED);
    const admin = await signInAdmin(world);
    const { organization_id } = world;
    const bob = await seedUser(world.server, { organization_id });
    const eve = await seedUser(world.server, { organization_id });
    const id = await turn(world, "mine");
    const other = await turn(world, "other");
    const [run] = await awaitRuns(world, id, 1);
    await world.owner.patch(`/api/v2/chats/${id}/acl`, { user_roles: { [bob.user_id]: "read" } });
    const status = async (token: string | undefined, path: string) =>
      (await new Client(world.server.url, token).fetch("GET", `/api/v2/chats/${path}`)).status;
    for (const path of [`${id}/debug/runs`, `${id}/debug/runs/${run?.id}`, `${id}/cost`]) {
      const statuses = [admin.token, bob.token, eve.token].map((token) => status(token, path));
      expect([path, await Promise.all(statuses)]).toEqual([path, [200, 403, 404]]);
    }
    expect(await status(world.owner.token, `${other}/debug/runs/${run?.id}`)).toBe(404);
    expect(await status(world.owner.token, `${id}/debug/runs/${crypto.randomUUID()}`)).toBe(404);
  },
);

testInside(
  "[RM-5] records are bounded: long texts, long histories, deep JSON, and the number of steps",
  async () => {
    const longText = "word ".repeat(200_000);
    const deep = JSON.parse(`${'{"a":'.repeat(400)}1${"}".repeat(400)}`);
    const manyMessages = Array.from({ length: 20_000 }, (_, index) => ({
      role: "user",
      content: [{ type: "text", text: `${index} ${longText.slice(0, 500)}` }],
    }));
    for (const value of [
      longText,
      deep,
      manyMessages,
      { messages: manyMessages, text: longText },
      Array(50).fill(Array(50).fill(longText)),
    ]) {
      expect(Buffer.byteLength(JSON.stringify(toRecordable(value)))).toBeLessThanOrEqual(MAX_RECORD_BYTES);
    }
    const recorded = toRecordable({ messages: manyMessages }) as { messages: unknown[] };
    expect(JSON.stringify(recorded.messages[0])).toContain('"0 word');
    expect(JSON.stringify(recorded.messages.at(-1))).toContain('"19999 word');
    await using world = await openChatWorld(FORCED);
    const { id } = await createChat(world, "loop");
    using follower = await Follower.open(world.owner, id);
    for (let step = 0; step <= MAX_RECORDED_STEPS; step++)
      (await world.models.next()).callTool(`c${step}`, "unknown").finish("tool_calls");
    (await world.models.next()).say("enough").finish();
    await follower.until(({ status }) => status === "waiting");
    const [run] = await awaitRuns(world, id, 1);
    expect((await getRun(world.owner, id, run?.id as string)).steps.length).toBeLessThanOrEqual(MAX_RECORDED_STEPS);
  },
  // Two hundred model calls take ten seconds on an idle machine.
  scaleTimeout(180_000),
);

testInside("[RM-6] credentials are not recorded, nor data that a provider stores with its messages", async () => {
  const secrets = [
    "Authorization: Bearer abcdefghijklmnop",
    "sk-proj-abcdefghijklmnopqrstu",
    "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abcdefgh",
    "https://ada:hunter22@example.com/x",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----",
    "abcdefghij-abcdefghijklmnopqrstuv",
  ];
  for (const secret of secrets)
    expect([secret, redactSecrets(`a ${secret} b`)]).toEqual([secret, expect.stringContaining("[redacted]")]);
  const plain = "The token count is 12; see https://example.com/a:b and task-force.";
  expect(redactSecrets(plain)).toBe(plain);
  expect(
    toRecordable({ api_key: "x", "X-Api-Key": "y", input_tokens: 3, session_token: "t", nested: { password: "z" } }),
  ).toEqual({
    api_key: "[redacted]",
    "X-Api-Key": "[redacted]",
    input_tokens: 3,
    session_token: "[redacted]",
    nested: { password: "[redacted]" },
  });
  await using world = await openChatWorld(FORCED);
  const { id } = await createChat(world, `my key is ${secrets[1]}`);
  using follower = await Follower.open(world.owner, id);
  (await world.models.next())
    .push({ type: "text", delta: "hm", metadata: { p: { signature: "of-the-provider" } } })
    .finish();
  await follower.until(({ status }) => status === "waiting");
  const [run] = await awaitRuns(world, id, 1);
  const text = JSON.stringify(await getRun(world.owner, id, run?.id as string));
  expect([
    text.includes("abcdefghijklmnopqrstu"),
    text.includes("of-the-provider"),
    text.includes("my key is"),
  ]).toEqual([false, false, true]);
});

testInside("[RM-7] a turn continues when its record cannot be written", async () => {
  await using world = await openChatWorld(FORCED);
  const { store } = getOwnerContext(world.server, world.user_id);
  const commit = store.commit.bind(store);
  store.commit = (async (batch, ...more) => {
    if (batch.some(({ sql }) => sql.includes("chat_run"))) throw new Error("no room");
    return commit(batch, ...more);
  }) as typeof store.commit;
  const id = await turn(world, "continues");
  expect(await listRuns(world.owner, id)).toEqual([]);
});

testInside(
  "[RM-8] the cost of a chat includes every call that reported its usage, also for messages that an edit has removed",
  async () => {
    await using world = await openChatWorld();
    const id = await turn(world, "one");
    const getCost = () => world.owner.get<ChatCost>(`/api/v2/chats/${id}/cost`);
    const nothing = { chat_id: id, total_cost_micros: 0 };
    expect(await getCost()).toMatchObject({ ...nothing, request_count: 1, unpriced_request_count: 1 });
    const { messages } = await world.owner.get<{ messages: { id: number }[] }>(`/api/v2/chats/${id}/messages`);
    await world.owner.patch(`/api/v2/chats/${id}/messages/${messages.at(-1)?.id}`, {
      content: [{ type: "text", text: "x" }],
    });
    using follower = await Follower.open(world.owner, id);
    (await world.models.next())
      .say("two")
      .push({ type: "usage", usage: { input_tokens: 1 } })
      .finish();
    await follower.until(({ status }) => status === "waiting");
    expect(await getCost()).toMatchObject({ ...nothing, request_count: 2, unpriced_request_count: 2 });
  },
);
