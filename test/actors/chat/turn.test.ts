// Chats and their turns on a real store, with a model controlled by the test.
import { expect, test } from "bun:test";
import type { ChatNotice } from "#actors/chat/messages.ts";
import { uuid } from "#base/ids.ts";
import { findChat } from "#db/chats/chats.ts";
import { listMessages } from "#db/chats/messages.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { SCRIPTED, ScriptedModels } from "#test/support/models/scripted-models.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { startTestServer, type TestServerOptions, tempDirectory } from "#test/support/server.ts";

/** Resolves when all ready callbacks have run. */
const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const openServices = async (options: TestServerOptions = {}) => {
  const models = new ScriptedModels();
  const clock = new ManualClock();
  const server = await startTestServer({ models, clock, ...options });
  const { chats, store, topics, generations } = getContext(server);
  const notices: ChatNotice[] = [];
  const waiters: { matches: (notice: ChatNotice) => boolean; resolve: (notice: ChatNotice) => void }[] = [];
  const follow = (id: string) =>
    topics.subscribe("chat", id, (notice) => {
      notices.push(notice);
      for (const waiter of waiters.filter(({ matches }) => matches(notice))) waiter.resolve(notice);
    });
  /** Resolves with the next matching notice. */
  const nextNotice = (matches: (notice: ChatNotice) => boolean): Promise<ChatNotice> =>
    new Promise((resolve) => waiters.push({ matches, resolve }));
  const nextStatus = (expected: string) => nextNotice((notice) => notice.status === expected);
  const loadTexts = async (id: string): Promise<string[]> => {
    const row = await store.get(findChat({ id }));
    const page = { chat: row?.key, after: 0, before: 1e9, revision: 1e9, limit: 1_000 };
    const rows = await store.all(listMessages(page));
    return rows.map(({ role, content }) => `${role}: ${content.map(({ text, type }) => text ?? type).join("")}`);
  };
  /** Resolves when followers have received more of the model's answer. */
  const nextOutput = (id: string): Promise<void> =>
    new Promise((resolve) => {
      const unsubscribe = topics.subscribe("chat_parts", id, () => {
        unsubscribe();
        resolve();
      });
    });
  return {
    server,
    models,
    clock,
    chats,
    store,
    generations,
    notices,
    nextNotice,
    nextStatus,
    loadTexts,
    follow,
    nextOutput,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
};

type Services = Awaited<ReturnType<typeof openServices>>;

type Person = { readonly user_id: string; readonly organization_id: string };

/** Creates a chat of this user, or of a new user. */
const createChat = async (
  services: Services,
  text = "hello",
  tools: string[] = [],
  owner?: Person,
): Promise<string> => {
  const { user_id, organization_id } = owner ?? (await seedUser(services.server));
  const id = uuid();
  services.follow(id);
  await services.chats.ask(id, "create", {
    chat: {
      id,
      organization_id,
      owner_id: user_id,
      workspace_id: null,
      parent_chat_id: null,
      root_chat_id: null,
      last_model_config_id: SCRIPTED.id,
      last_reasoning_effort: "",
      title: "Chat",
      client_type: "api",
      plan_mode: null,
      labels: {},
      mcp_server_ids: [],
      dynamic_tools: tools.map((name) => ({ name, description: name, input_schema: {} })),
    },
    messages: [
      {
        role: "user",
        visibility: "both",
        content: [{ type: "text", text }],
        created_by: user_id,
        model_config_id: null,
        usage: null,
      },
    ],
  });
  return id;
};

const send = (services: Services, id: string, text: string, behavior: "queue" | "interrupt" = "queue") =>
  services.chats.ask(id, "send", {
    content: [{ type: "text", text }],
    created_by: uuid(),
    model_config_id: null,
    reasoning_effort: "",
    behavior,
    patch: {},
  });

test("[CH-10] a turn stores the model's answer and the chat waits again; queued messages follow in order", async () => {
  await using services = await openServices();
  const id = await createChat(services, "one");
  const first = await services.models.next();
  expect((await send(services, id, "two")).queued).not.toBeNull();
  expect((await send(services, id, "three")).queued).not.toBeNull();
  first.say("an", "swer").finish();
  const second = await services.models.next();
  expect(second.prompt).toBe("two");
  second.say("b").finish();
  const third = await services.models.next();
  const done = services.nextStatus("waiting");
  third.say("c").finish();
  expect((await done).queue).toEqual([]);
  expect(await services.loadTexts(id)).toEqual([
    "user: one",
    "assistant: answer",
    "user: two",
    "assistant: b",
    "user: three",
    "assistant: c",
  ]);
  const versions = services.notices.map(({ snapshot_version }) => snapshot_version);
  expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
});

test("[CH-11] an interrupt keeps the output and stops the model immediately; later output is discarded", async () => {
  await using services = await openServices();
  const id = await createChat(services);
  const call = await services.models.next();
  const output = services.nextOutput(id);
  call.say("half", " a sentence");
  await output;
  const stopped = services.nextStatus("waiting");
  await services.chats.ask(id, "interrupt", {});
  await stopped;
  expect(call.request.signal.aborted).toBe(true);
  call.say("too late").finish();
  expect(await services.loadTexts(id)).toEqual(["user: hello", "assistant: half a sentence"]);
  await services.chats.ask(id, "snapshot", {});
  expect(services.generations.hasActiveTurn(id)).toBe(false);
});

test("[CH-12] an edit makes the running turn obsolete and starts another on the shorter history", async () => {
  await using services = await openServices();
  const id = await createChat(services, "wrong");
  const oldCall = await services.models.next();
  oldCall.say("nonsense");
  const row = await services.store.get(findChat({ id }));
  const page = { chat: row?.key, after: 0, before: 1e9, revision: 1e9, limit: 10 };
  const [target] = await services.store.all(listMessages(page));
  const edited = await services.chats.ask(id, "edit", {
    message_id: target?.id ?? 0,
    content: [{ type: "text", text: "right" }],
    created_by: uuid(),
    model_config_id: null,
    patch: {},
  });
  expect(edited.deleted_ids).toEqual([target?.id ?? 0]);
  const newCall = await services.models.next();
  expect([newCall.prompt, oldCall.request.signal.aborted]).toEqual(["right", true]);
  const done = services.nextStatus("waiting");
  oldCall.finish();
  newCall.say("good").finish();
  await done;
  expect(await services.loadTexts(id)).toEqual(["user: right", "assistant: good"]);
});

test("[CH-13] retries a transient failure with a growing delay, at least the provider's; a permanent failure ends the turn", async () => {
  await using services = await openServices();
  const id = await createChat(services);
  const delays: number[] = [];
  for (const retry_after_ms of [0, 0, 9_000]) {
    const failed = services.nextNotice(({ retry_state }) => retry_state !== null);
    (await services.models.next()).say("par").fail("rate_limit", { retry_after_ms, status_code: 429 });
    const { retry_state } = await failed;
    delays.push(retry_state?.delay_ms ?? 0);
    await nextTick();
    services.clock.advance(retry_state?.delay_ms ?? 0);
  }
  expect(delays).toEqual([1_000, 2_000, 9_000]);
  const errorStatus = services.nextStatus("error");
  const last = await services.models.next();
  expect(last.request.attempt).toBe(4);
  last.fail("auth", { status_code: 401 });
  expect((await errorStatus).last_error).toMatchObject({ kind: "auth", status_code: 401, retryable: false });
  expect(await services.loadTexts(id)).toEqual(["user: hello"]);
});

test("[CH-14] a model call that falls silent or ends early is retried", async () => {
  await using services = await openServices();
  await createChat(services);
  await services.models.next();
  const silent = services.nextNotice(({ retry_state }) => retry_state !== null);
  services.clock.advance(600_000);
  expect((await silent).retry_state?.kind).toBe("stream_silence_timeout");
  await nextTick();
  services.clock.advance(1_000);
  const cutOff = services.nextNotice(({ retry_state }) => retry_state?.attempt === 2);
  (await services.models.next()).say("this bre").end();
  expect((await cutOff).retry_state?.kind).toBe("timeout");
});

test("[MO-47] the server retries an answer that ends early up to four times in a row, and keeps the last output", async () => {
  await using services = await openServices();
  const id = await createChat(services);
  const failed = services.nextStatus("error");
  for (let call = 1; call <= 5; call += 1) {
    const retrying = services.nextNotice(({ retry_state }) => retry_state?.attempt === call);
    (await services.models.next()).say(`half ${call}`).end();
    if (call === 5) break;
    const { retry_state } = await retrying;
    await nextTick();
    services.clock.advance(retry_state?.delay_ms ?? 0);
  }
  expect((await failed).last_error).toMatchObject({ kind: "timeout", retryable: true });
  expect(services.models.calls).toHaveLength(5);
  expect(await services.loadTexts(id)).toEqual(["user: hello", "assistant: half 5"]);
});

test("[CH-15] the chat waits for results of client tools until the deadline; calls of unknown tools fail immediately", async () => {
  await using services = await openServices();
  const id = await createChat(services, "go", ["ask"]);
  const requested = services.nextStatus("requires_action");
  (await services.models.next()).callTool("one", "ask", { q: 1 }).callTool("two", "nothing").finish("tool_calls");
  expect((await requested).pending_calls).toMatchObject([{ tool_call_id: "one", tool_name: "ask", args: { q: 1 } }]);
  await services.chats.ask(id, "completeAction", {
    results: [{ tool_call_id: "one", output: { a: 2 }, is_error: false }],
  });
  const secondCall = await services.models.next();
  expect(secondCall.request.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "tool"]);
  const second = services.nextStatus("requires_action");
  secondCall.callTool("three", "ask").finish("tool_calls");
  await second;
  services.clock.advance(301_000);
  const third = await services.models.next();
  expect(third.request.messages.at(-1)?.content[0]).toMatchObject({ tool_call_id: "three", is_error: true });
  const done = services.nextStatus("waiting");
  third.say("well").finish();
  await done;
});

test("[CH-16] after a restart a running chat continues with a new attempt and its queue", async () => {
  using temp = tempDirectory();
  let id = "";
  {
    await using services = await openServices({ directory: temp.path });
    id = await createChat(services, "one");
    (await services.models.next()).say("lost");
    await send(services, id, "two");
  }
  await using services = await openServices({ directory: temp.path });
  services.follow(id);
  const call = await services.models.next();
  expect([call.prompt, call.request.attempt]).toEqual(["one", 2]);
  call.say("a").finish();
  const done = services.nextStatus("waiting");
  (await services.models.next()).say("b").finish();
  await done;
  expect(await services.loadTexts(id)).toEqual(["user: one", "assistant: a", "user: two", "assistant: b"]);
});

test("[CH-17] the number of concurrent turns is limited; a waiting turn starts when a slot is free", async () => {
  await using services = await openServices({ env: { SLIPWAY_CHAT_SLOTS: "1" } });
  const firstChat = await createChat(services, "one");
  const secondChat = await createChat(services, "two");
  const first = await services.models.next();
  expect([services.generations.isWaiting(firstChat), services.generations.isWaiting(secondChat)]).toEqual([
    false,
    true,
  ]);
  first.finish();
  const second = await services.models.next();
  expect([second.prompt, services.generations.isWaiting(secondChat)]).toEqual(["two", false]);
});

test("[CH-47] a turn that waits for a retry releases its slot and takes another before it calls again", async () => {
  await using services = await openServices({ env: { SLIPWAY_CHAT_SLOTS: "1" } });
  const firstChat = await createChat(services, "one");
  const failed = services.nextNotice(({ retry_state }) => retry_state !== null);
  (await services.models.next()).fail("overloaded", { retryable: true });
  const { retry_state } = await failed;
  await nextTick();
  const secondChat = await createChat(services, "two");
  const second = await services.models.next();
  expect([
    second.prompt,
    services.generations.isWaiting(firstChat),
    services.generations.isWaiting(secondChat),
  ]).toEqual([...["two", false, false]]);
  services.clock.advance(retry_state?.delay_ms ?? 0);
  await nextTick();
  expect(services.generations.isWaiting(firstChat)).toBe(true);
  second.finish();
  const retriedCall = await services.models.next();
  expect([retriedCall.prompt, retriedCall.request.attempt]).toEqual(["one", 2]);
  // The retried turn occupies a slot: new chats wait until it is stopped.
  const thirdChat = await createChat(services, "three");
  expect(services.generations.isWaiting(thirdChat)).toBe(true);
  await services.chats.ask(firstChat, "interrupt", {});
  expect((await services.models.next()).prompt).toBe("three");
});

test("[CH-49] slots are shared fairly: one owner's many chats do not block another's", async () => {
  await using services = await openServices({ env: { SLIPWAY_CHAT_SLOTS: "2" } });
  const busy = await seedUser(services.server);
  for (let number = 1; number <= 8; number += 1) await createChat(services, `busy ${number}`, [], busy);
  const first = await services.models.next();
  await services.models.next();
  const other = await seedUser(services.server);
  for (const text of ["other 1", "other 2"]) await createChat(services, text, [], other);
  const third = await seedUser(services.server);
  await createChat(services, "third 1", [], third);
  const order: string[] = [];
  for (let call = first; order.length < 9; ) {
    call.finish();
    call = await services.models.next();
    order.push(call.prompt);
  }
  expect(order).toEqual([
    ...["other 1", "third 1", "other 2", "busy 3", "busy 4", "busy 5", "busy 6", "busy 7", "busy 8"],
  ]);
});

test("[CH-49] a turn of many steps yields to another owner's chat between two steps, but not to one of its own owner", async () => {
  await using services = await openServices({ env: { SLIPWAY_CHAT_SLOTS: "1" } });
  const busy = await seedUser(services.server);
  const firstChat = await createChat(services, "one", [], busy);
  const first = await services.models.next();
  await createChat(services, "two", [], busy);
  first.callTool("call-1", "list_templates").finish("tool_calls");
  const second = await services.models.next();
  expect(second.prompt).toBe("one");
  await createChat(services, "other");
  second.callTool("call-2", "list_templates").finish("tool_calls");
  const otherCall = await services.models.next();
  expect([otherCall.prompt, services.generations.isWaiting(firstChat)]).toEqual(["other", true]);
  otherCall.finish();
  const laterCalls = [await services.models.next()];
  laterCalls[0]?.finish();
  laterCalls.push(await services.models.next());
  expect(laterCalls.map(({ prompt }) => prompt).sort()).toEqual(["one", "two"]);
});

test("[CH-49] an owner who waits for some time gets an extra slot; there are at most as many extra slots as slots", async () => {
  await using services = await openServices({ env: { SLIPWAY_CHAT_SLOTS: "1" } });
  const [busy, other, third] = [
    await seedUser(services.server),
    await seedUser(services.server),
    await seedUser(services.server),
  ];
  await createChat(services, "for ever", [], busy);
  await services.models.next();
  const busyChat = await createChat(services, "busy 2", [], busy);
  const otherChat = await createChat(services, "other", [], other);
  const thirdChat = await createChat(services, "third", [], third);
  const waiting = () => [busyChat, otherChat, thirdChat].map((id) => services.generations.isWaiting(id));
  expect(waiting()).toEqual([true, true, true]);
  services.clock.advance(20_000);
  const otherCall = await services.models.next();
  expect([otherCall.prompt, ...waiting()]).toEqual(["other", true, false, true]);
  const done = services.nextStatus("waiting");
  otherCall.finish();
  await done;
  await nextTick();
  services.clock.advance(20_000);
  expect((await services.models.next()).prompt).toBe("third");
  expect(waiting()).toEqual([true, false, false]);
});

test("[CH-18] promoting while a turn runs stops it; the promoted message goes first and nothing is lost", async () => {
  await using services = await openServices();
  const id = await createChat(services, "one");
  const output = services.nextOutput(id);
  (await services.models.next()).say("half");
  await output;
  await send(services, id, "two");
  const { queued } = await send(services, id, "three");
  await services.chats.ask(id, "promoteQueued", { queued_id: queued?.id ?? 0 });
  const next = await services.models.next();
  expect(next.prompt).toBe("three");
  next.finish();
  const done = services.nextStatus("waiting");
  (await services.models.next()).say("end").finish();
  await done;
  expect(await services.loadTexts(id)).toEqual([
    "user: one",
    "assistant: half",
    "user: three",
    "assistant: Done.",
    "user: two",
    "assistant: end",
  ]);
});
