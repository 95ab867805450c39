// Recordings of model calls: conditions, content, read access, and independence of turns from recording.
import { expect } from "bun:test";
import { MAX_RECORD_BYTES, redactSecrets, toRecordable } from "#actors/chat/background/record-text.ts";
import { MAX_RECORDED_STEPS } from "#actors/chat/background/recorder.ts";
import { interruptOpenRuns } from "#db/chats/runs.ts";
import type { ChatCost } from "#schema/chats/chat-cost.ts";
import type { ChatRun, ChatRunWithSteps } from "#schema/chats/chat-debug.ts";
import { Client } from "#src/client.ts";
import { type ChatWorld, createChat, Follower, openChatWorld, sendMessage } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { createCallWaiter } from "#test/support/models/side-calls.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { getContext, getOwnerContext, seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";

const CONFIG = "/api/v2/chats/config";
const ALWAYS_RECORDING = { env: { SLIPWAY_CHAT_DEBUG_LOGGING: "true" } };
const listRuns = (client: Client, id: string) => client.get<ChatRun[]>(`/api/v2/chats/${id}/debug/runs`);
const getRun = (client: Client, id: string, run: string) =>
  client.get<ChatRunWithSteps>(`/api/v2/chats/${id}/debug/runs/${run}`);
const signInAdmin = (world: ChatWorld) => new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);

/** Resolves when the chat has this number of ended runs, and returns all its runs. */
const waitForRuns = async (world: ChatWorld, id: string, endedCount: number): Promise<ChatRun[]> => {
  const { store } = getContext(world.server);
  for (;;) {
    const runs = await listRuns(world.owner, id);
    if (runs.filter(({ status }) => status !== "in_progress").length >= endedCount) return runs;
    // Records are written in the background. A commit that changes nothing ends after earlier submissions.
    const { sql, ...statement } = interruptOpenRuns(-1);
    await store.commit([{ ...statement, sql: `${sql} and false` }]);
  }
};
const runTurn = async (world: ChatWorld, text: string): Promise<string> => {
  const { id } = await createChat(world, text);
  using follower = await Follower.open(world.owner, id);
  (await world.models.next())
    .say("an answer")
    .push({ type: "usage", usage: { input_tokens: 3 } })
    .finish();
  await follower.until(({ status }) => status === "waiting");
  return id;
};

testInProcess(
  "[RM-1] records calls only if the deployment requires it, or an administrator allows it and the user enables it",
  async () => {
    await using world = await openChatWorld();
    const admin = await signInAdmin(world);
    expect(await listRuns(world.owner, await runTurn(world, "not recorded"))).toEqual([]);
    await admin.put(`${CONFIG}/debug-logging`, { allow_users: true });
    expect(await listRuns(world.owner, await runTurn(world, "allowed only"))).toEqual([]);
    await world.owner.put(`${CONFIG}/user-debug-logging`, { debug_logging_enabled: true });
    const recorded = await runTurn(world, "wanted");
    expect((await waitForRuns(world, recorded, 1)).length).toBe(1);
    await admin.put(`${CONFIG}/debug-logging`, { allow_users: false });
    expect(await listRuns(world.owner, await runTurn(world, "no longer allowed"))).toEqual([]);
    await using recordingWorld = await openChatWorld(ALWAYS_RECORDING);
    expect((await waitForRuns(recordingWorld, await runTurn(recordingWorld, "forced"), 1)).length).toBe(1);
  },
);

testInProcess("[RM-2] a run shows the model's requests and answers step by step; the newest run is first", async () => {
  await using world = await openChatWorld(ALWAYS_RECORDING);
  const unsafe_dynamic_tools = [{ name: "ask", description: "asks", input_schema: {} }];
  const { id } = await createChat(world, "first", { unsafe_dynamic_tools });
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).fail("auth", { status_code: 401 });
  await follower.until(({ status }) => status === "error");
  await waitForRuns(world, id, 1);
  const { message } = await sendMessage(world, id, "second");
  const call = await world.models.next();
  call
    .callTool("c", "unknown")
    .push({ type: "usage", usage: { input_tokens: 3, output_tokens: 4 } })
    .finish("tool_calls");
  (await world.models.next()).say("done").finish();
  await follower.until(({ status }) => status === "waiting");
  const [newest, oldest] = await waitForRuns(world, id, 2);
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
  const [firstStep, secondStep] = steps;
  expect(firstStep?.usage).toEqual({ input_tokens: 3, output_tokens: 4 });
  expect(firstStep?.request).toMatchObject({
    tools: expect.arrayContaining([expect.objectContaining({ name: "ask", description: "asks" })]),
  });
  expect(JSON.stringify(firstStep?.request)).toContain("second");
  expect(firstStep?.response).toMatchObject({
    content: [{ type: "tool-call", tool_name: "unknown" }],
    finish: "tool_calls",
  });
  expect(secondStep?.response).toMatchObject({ content: [{ type: "text", text: "done" }], finish: "stop" });
  const failedRun = await getRun(world.owner, id, oldest?.id as string);
  expect(failedRun.steps).toMatchObject([{ status: "error", error: { kind: "auth", status_code: 401 } }]);
  const fromOlderPath = await world.owner.get<ChatRun[]>(`/api/experimental/chats/${id}/debug/runs`);
  expect(fromOlderPath.map((listed) => listed.id)).toEqual([newest?.id as string, oldest?.id as string]);
});

testInProcess("[RM-9] records model calls outside turns by kind", async () => {
  const models = new ScriptedModels(true);
  await using world = await openChatWorld({ models, env: { ...ALWAYS_RECORDING.env, SLIPWAY_CHAT_TITLES: "true" } });
  const { id } = await createChat(world, "a first message of more than six words");
  const nextCall = createCallWaiter(models);
  const turnCall = await nextCall("turn");
  (await nextCall("title"))
    .say("A title")
    .push({ type: "usage", usage: { input_tokens: 3 } })
    .finish();
  await waitForRuns(world, id, 1);
  turnCall.say("an answer").finish();
  (await nextCall("label")).fail("auth");
  const runs = await waitForRuns(world, id, 3);
  expect(Object.fromEntries(runs.map(({ kind, status }) => [kind, status]))).toEqual({
    chat_turn: "completed",
    title_generation: "completed",
    quickgen: "error",
  });
  const titleRun = runs.find(({ kind }) => kind === "title_generation");
  const { steps } = await getRun(world.owner, id, titleRun?.id as string);
  expect(steps).toMatchObject([
    {
      operation: "generate",
      status: "completed",
      usage: { input_tokens: 3 },
      response: { content: [{ text: "A title" }] },
    },
  ]);
});

testInProcess(
  "[RM-3] marks the run of an interrupted turn as interrupted; after a server stop, the next start marks it",
  async () => {
    await using world = await openChatWorld(ALWAYS_RECORDING);
    const { id } = await createChat(world, "go");
    using follower = await Follower.open(world.owner, id);
    (await world.models.next()).say("half");
    await follower.until(({ preview }) => preview === "half");
    expect((await listRuns(world.owner, id)).map(({ status }) => status)).toEqual(["in_progress"]);
    await world.owner.post(`/api/v2/chats/${id}/interrupt`);
    const [run] = await waitForRuns(world, id, 1);
    expect(run?.status).toBe("interrupted");
    const { steps } = await getRun(world.owner, id, run?.id as string);
    expect(steps).toMatchObject([{ status: "interrupted", response: { content: [{ type: "text", text: "half" }] } }]);
    const { id: secondId } = await createChat(world, "again");
    using secondFollower = await Follower.open(world.owner, secondId);
    (await world.models.next()).say("x");
    await secondFollower.until(({ preview }) => preview === "x");
    await getContext(world.server).store.commit([interruptOpenRuns(1)]);
    expect((await listRuns(world.owner, secondId)).map(({ status }) => status)).toEqual(["interrupted"]);
  },
);

testInProcess(
  "[RM-4] only the chat's owner and the deployment's owner see runs: readers get 403, other users and chats 404",
  async () => {
    await using world = await openChatWorld(ALWAYS_RECORDING);
    const admin = await signInAdmin(world);
    const { organization_id } = world;
    const bob = await seedUser(world.server, { organization_id });
    const eve = await seedUser(world.server, { organization_id });
    const id = await runTurn(world, "mine");
    const otherChat = await runTurn(world, "other");
    const [run] = await waitForRuns(world, id, 1);
    await world.owner.patch(`/api/v2/chats/${id}/acl`, { user_roles: { [bob.user_id]: "read" } });
    const fetchStatus = async (token: string | undefined, path: string) =>
      (await new Client(world.server.url, token).fetch("GET", `/api/v2/chats/${path}`)).status;
    for (const path of [`${id}/debug/runs`, `${id}/debug/runs/${run?.id}`, `${id}/cost`]) {
      const statuses = [admin.token, bob.token, eve.token].map((token) => fetchStatus(token, path));
      expect([path, await Promise.all(statuses)]).toEqual([path, [200, 403, 404]]);
    }
    expect(await fetchStatus(world.owner.token, `${otherChat}/debug/runs/${run?.id}`)).toBe(404);
    expect(await fetchStatus(world.owner.token, `${id}/debug/runs/${crypto.randomUUID()}`)).toBe(404);
  },
);

testInProcess(
  "[RM-5] limits records of long texts, long histories, deep JSON and many steps",
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
    await using world = await openChatWorld(ALWAYS_RECORDING);
    const { id } = await createChat(world, "loop");
    using follower = await Follower.open(world.owner, id);
    for (let step = 0; step <= MAX_RECORDED_STEPS; step++)
      (await world.models.next()).callTool(`c${step}`, "unknown").finish("tool_calls");
    (await world.models.next()).say("enough").finish();
    await follower.until(({ status }) => status === "waiting");
    const [run] = await waitForRuns(world, id, 1);
    expect((await getRun(world.owner, id, run?.id as string)).steps.length).toBeLessThanOrEqual(MAX_RECORDED_STEPS);
  },
  // Two hundred model calls take ten seconds on an idle machine.
  scaleTimeout(180_000),
);

testInProcess("[RM-6] records neither credentials nor data that a provider stores with its messages", async () => {
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
  await using world = await openChatWorld(ALWAYS_RECORDING);
  const { id } = await createChat(world, `my key is ${secrets[1]}`);
  using follower = await Follower.open(world.owner, id);
  (await world.models.next())
    .push({ type: "text", delta: "hm", metadata: { p: { signature: "of-the-provider" } } })
    .finish();
  await follower.until(({ status }) => status === "waiting");
  const [run] = await waitForRuns(world, id, 1);
  const text = JSON.stringify(await getRun(world.owner, id, run?.id as string));
  expect(text).not.toContain("abcdefghijklmnopqrstu");
  expect(text).not.toContain("of-the-provider");
  expect(text).toContain("my key is");
});

testInProcess("[RM-7] a turn completes even if its record cannot be written", async () => {
  await using world = await openChatWorld(ALWAYS_RECORDING);
  const { store } = getOwnerContext(world.server, world.user_id);
  const commit = store.commit.bind(store);
  store.commit = (async (batch, ...more) => {
    if (batch.some(({ sql }) => sql.includes("chat_run"))) throw new Error("no room");
    return commit(batch, ...more);
  }) as typeof store.commit;
  const id = await runTurn(world, "continues");
  expect(await listRuns(world.owner, id)).toEqual([]);
});

testInProcess(
  "[RM-8] the cost of a chat includes every call that reported its usage, even if an edit has removed the message",
  async () => {
    await using world = await openChatWorld();
    const id = await runTurn(world, "one");
    const getCost = () => world.owner.get<ChatCost>(`/api/v2/chats/${id}/cost`);
    const unpriced = { chat_id: id, total_cost_micros: 0 };
    expect(await getCost()).toMatchObject({ ...unpriced, request_count: 1, unpriced_request_count: 1 });
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
    expect(await getCost()).toMatchObject({ ...unpriced, request_count: 2, unpriced_request_count: 2 });
  },
);
