// Concurrent operations: in either order, the transition table allows the outcome, and nothing is lost or duplicated.
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { findChatAccessRow } from "#db/chats/chats.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import {
  type ChatWorld,
  createChat,
  Follower,
  loadHistory,
  openChatWorld,
  sendMessage,
  toTextContent,
} from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { readEvents } from "#test/support/net/event-reader.ts";
import { getContext, getOwnerContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

/** The time limit for tool results (facts/chats 1.10). */
const RESULTS_TIMEOUT_MS = 300_000;

test("[CH-41] accepts one of two concurrent answers to the same calls, and refuses the other", async () => {
  await using world = await openChatWorld();
  const unsafe_dynamic_tools = [{ name: "ask", description: "asks", input_schema: {} }];
  const { id } = await createChat(world, "go", { unsafe_dynamic_tools });
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).callTool("c1", "ask").finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  const answer = async (output: string) => {
    const results = [{ tool_call_id: "c1", output }];
    return (await world.owner.fetch("POST", `/api/v2/chats/${id}/tool-results`, { results })).status;
  };
  expect((await Promise.all([answer("a"), answer("b")])).sort()).toEqual([204, 409]);
  const call = await world.models.next();
  expect(call.request.messages.filter(({ role }) => role === "tool").length).toBe(1);
});

test("[CH-41] stores the text once when an interruption races with the end of the answer", async () => {
  await using world = await openChatWorld();
  for (let round = 0; round < 10; round++) {
    const { id } = await createChat(world, "go");
    using follower = await Follower.open(world.owner, id);
    const call = await world.models.next();
    call.say("all of it");
    await follower.until(({ preview }) => preview === "all of it");
    const interruption = world.owner.fetch("POST", `/api/v2/chats/${id}/interrupt`);
    if (round % 2 === 0) await Promise.resolve();
    call.finish();
    expect([200, 409]).toContain((await interruption).status);
    await follower.until(({ status }) => status === "waiting");
    expect(follower.history).toEqual(["user: go", "assistant: all of it"]);
  }
});

test("[CH-41] an archive request and a message that race never both succeed", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "go");
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).finish();
  await follower.until(({ status }) => status === "waiting");
  const path = `/api/v2/chats/${id}`;
  const responses = await Promise.all([
    world.owner.fetch("PATCH", path, { archived: true }),
    world.owner.fetch("POST", `${path}/messages`, { content: toTextContent("more") }),
  ]);
  expect(["204,409", "409,200"]).toContain(responses.map(({ status }) => status).join());
});

test("[CH-41] sends every queued message once when a promotion races with the end of the turn", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "go");
  using follower = await Follower.open(world.owner, id);
  const call = await world.models.next();
  await sendMessage(world, id, "a");
  const { queued_message } = await sendMessage(world, id, "b");
  const promotion = world.owner.fetch("POST", `/api/v2/chats/${id}/queue/${queued_message?.id}/promote`);
  call.finish();
  expect([202, 404, 409]).toContain((await promotion).status);
  const finishAllCalls = async (): Promise<void> => {
    for (;;) (await world.models.next()).finish();
  };
  void finishAllCalls();
  await follower.until(
    ({ status, queue, messages }) => status === "waiting" && queue.length === 0 && messages.size > 4,
  );
  const userMessages = follower.history.slice(1).filter((line) => line.startsWith("user"));
  expect(userMessages.sort()).toEqual(["user: a", "user: b"]);
});

/** Delays the next matching commit until it is released. */
const delayCommit = (world: ChatWorld, matches: (sql: string) => boolean) => {
  const { store } = getOwnerContext(world.server, world.user_id);
  const commit = store.commit.bind(store);
  const reached = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  store.commit = async (batch, ...more) => {
    if (!batch.some(({ sql }) => matches(sql))) return commit(batch, ...more);
    store.commit = commit;
    reached.resolve();
    await gate.promise;
    return commit(batch, ...more);
  };
  return { reached: reached.promise, release: () => gate.resolve() };
};
const insertsMessages = (sql: string) => sql.startsWith('insert into "messages"');
/** Makes a request, so that the server handles everything that was sent before. */
const makeRoundTrip = (world: ChatWorld, id: string) => world.owner.get<Chat>(`/api/v2/chats/${id}`);
const toChatPath = (id: string) => `/api/v2/chats/${id}`;

testInProcess("[CH-41] no replaced message remains when an edit races with the commit of a step", async () => {
  await using world = await openChatWorld();
  for (const firstEvent of ["step", "edit"] as const) {
    const { id } = await createChat(world, "go");
    using follower = await Follower.open(world.owner, id);
    const call = await world.models.next();
    call.say("old words");
    await follower.until(({ preview }) => preview === "old words");
    const messageId = [...follower.messages.keys()][0];
    const edit = () =>
      world.owner.fetch("PATCH", `${toChatPath(id)}/messages/${messageId}`, { content: toTextContent("go elsewhere") });
    const gate = delayCommit(world, insertsMessages);
    let response: Promise<Response>;
    if (firstEvent === "step") {
      call.finish();
      await gate.reached;
      response = edit();
    } else {
      response = edit();
      await gate.reached;
      call.finish();
    }
    await makeRoundTrip(world, id);
    gate.release();
    expect((await response).status).toBe(200);
    (await world.models.next()).say("new words").finish();
    await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: new words");
    expect(follower.history).toEqual(["user: go elsewhere", "assistant: new words"]);
    expect(await loadHistory(world.owner, id)).toEqual(follower.history);
  }
});

testInProcess(
  "[CH-41] either the timeout or the results answer the calls when they race, and the other is ignored",
  async () => {
    const clock = new ManualClock();
    await using world = await openChatWorld({ clock });
    const { chats, scheduler } = getContext(world.server);
    const unsafe_dynamic_tools = [{ name: "ask", description: "asks", input_schema: {} }];
    for (const firstEvent of ["results", "timeout"] as const) {
      const { id } = await createChat(world, "go", { unsafe_dynamic_tools });
      using follower = await Follower.open(world.owner, id);
      (await world.models.next()).callTool("c", "ask").finish("tool_calls");
      await follower.until(({ status }) => status === "requires_action");
      const toolResult = { tool_call_id: "c", output: "an answer" };
      const gate = delayCommit(world, insertsMessages);
      let outcome: Promise<unknown>;
      if (firstEvent === "results") {
        // This does not use a request, because a request would time out.
        outcome = chats.ask(id, "completeAction", { results: [{ ...toolResult, is_error: false }] });
        await gate.reached;
        clock.leap(RESULTS_TIMEOUT_MS + 1);
      } else {
        clock.leap(RESULTS_TIMEOUT_MS + 1);
        await gate.reached;
        outcome = world.owner
          .fetch("POST", `${toChatPath(id)}/tool-results`, { results: [toolResult] })
          .then(({ status }) => status);
      }
      await makeRoundTrip(world, id);
      gate.release();
      expect(await outcome).toBe(firstEvent === "results" ? null : 409);
      await scheduler.tick();
      const call = await world.models.next();
      const answers = call.request.messages.filter(({ role }) => role === "tool");
      expect(answers.length).toBe(1);
      expect(JSON.stringify(answers).includes("an answer")).toBe(firstEvent === "results");
      call.finish();
      await follower.until(({ status }) => status === "waiting");
    }
  },
);

testInProcess.each(["promote", "finish"])(
  "[CH-41] sends every queued message once when a promotion races with the end of the turn, %s first",
  async (firstEvent) => {
    await using world = await openChatWorld();
    const { id } = await createChat(world, "go");
    using follower = await Follower.open(world.owner, id);
    await follower.until(({ status }) => status === "running");
    const call = await world.models.next();
    await sendMessage(world, id, "a");
    const { queued_message } = await sendMessage(world, id, "b");
    await follower.until(({ queue }) => queue.length === 2);
    const promote = () => world.owner.fetch("POST", `${toChatPath(id)}/queue/${queued_message?.id}/promote`);
    const gate = delayCommit(world, (sql) => sql.startsWith('update "chats"') && sql.includes('"snapshot_version" = '));
    let response: Promise<Response>;
    if (firstEvent === "promote") {
      response = promote();
      await gate.reached;
      call.say("done").finish();
    } else {
      call.say("done").finish();
      await gate.reached;
      response = promote();
    }
    await makeRoundTrip(world, id);
    gate.release();
    expect((await response).status).toBe(202);
    const finishAllCalls = async (): Promise<void> => {
      for (;;) (await world.models.next()).finish();
    };
    void finishAllCalls();
    const listUserMessages = ({ history }: Follower): string[] => history.filter((line) => line.startsWith("user"));
    await follower.until(
      (state) => state.status === "waiting" && state.queue.length === 0 && listUserMessages(state).length === 3,
    );
    expect(listUserMessages(follower).sort()).toEqual(["user: a", "user: b", "user: go"]);
    expect(await loadHistory(world.owner, id)).toEqual(follower.history);
  },
);

testInProcess(
  "[CH-42] disconnects a follower that does not read for ten seconds; a slow one gets everything, a fast one never waits",
  async () => {
    const clock = new ManualClock();
    await using world = await openChatWorld({ clock });
    const { store, streams } = getContext(world.server);
    const { id } = await createChat(world, "go");
    using firstFollower = await Follower.open(world.owner, id);
    (await world.models.next()).finish();
    await firstFollower.until(({ status }) => status === "waiting");
    const key = (await store.get(findChatAccessRow({ id })))?.key as number;
    // The messages exceed the buffers of all sockets between, which are four if another node has the chat.
    const size = world.server.contexts.length > 1 ? 24_000 : 8_000;
    const content = JSON.stringify([{ type: "text", text: "x".repeat(size) }]);
    const insert =
      "insert into messages (id, chat, revision, role, visibility, content, created_at) values (?1, ?2, 1, 'user', 'user', ?3, 1)";
    const firstId = 1_000_000;
    for (let offset = 0; offset < 3_000; offset += 100) {
      await store.commit([
        { sql: insert, rows: Array.from({ length: 100 }, (_, index) => [firstId + offset + index, key, content]) },
      ]);
    }
    const { port, hostname } = world.server.url;
    const stuckSocket = connect(Number(port), hostname);
    stuckSocket.on("error", () => {});
    stuckSocket.pause();
    const headers = `Host: ${hostname}:${port}\r\nAccept: text/event-stream\r\nService-Session-Token: ${world.owner.token}`;
    stuckSocket.write(`GET ${toChatPath(id)}/stream HTTP/1.1\r\n${headers}\r\n\r\n`);
    await until(() => streams.size !== 0);
    using fastFollower = await Follower.open(world.owner, id);
    await fastFollower.until(({ messages, status }) => messages.size === 3_002 && status === "waiting");
    await sendMessage(world, id, "more");
    (await world.models.next()).say("quick").finish();
    await fastFollower.until(({ history }) => history.includes("assistant: quick"));
    // Only the stuck follower is connected to the stream now. Only a timeout can end it, once all buffers up to the server are full.
    await until(() => streams.size === 0 || void clock.leap(10_001), { what: "the end of the stuck follower" });
    stuckSocket.destroy();
    const response = await fetch(new URL(`${toChatPath(id)}/stream`, world.server.url), {
      headers: { "Service-Session-Token": world.owner.token as string, accept: "text/event-stream" },
    });
    const receivedIds = new Set<number>();
    for await (const { data } of readEvents<ChatEvent[]>(response)) {
      for (const event of data ?? []) if (event.type === "message") receivedIds.add(event.message.id);
      await new Promise((resolve) => setImmediate(resolve));
      if (data?.some(({ type }) => type === "status")) break;
    }
    expect([...receivedIds].sort((a, b) => a - b)).toEqual([...fastFollower.messages.keys()].sort((a, b) => a - b));
  },
);
