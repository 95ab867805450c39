// Slightly malformed answers of chat-completions servers, over a real socket. Their content is kept, and incomplete calls never run.
import { describe, expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { createChat, Follower, openChatWorld, sendMessage } from "#test/support/chats.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";

const DONE = "data: [DONE]\n\n";
const toEvent = (chunk: unknown): string => `data: ${JSON.stringify(chunk)}\n\n`;
const toChunk = (delta: unknown, fields: object = {}): string =>
  toEvent({ id: "c1", choices: [{ index: 0, delta, ...fields }] });
const toEndChunk = (finish_reason: unknown): string => toChunk({}, { finish_reason });
const toUsageChunk = (counts: object): string =>
  toEvent({ id: "c1", choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: counts });
const toCallChunk = (args: unknown): string =>
  toChunk({
    tool_calls: [{ index: 0, id: "call-1", type: "function", function: { name: "list_templates", arguments: args } }],
  });

/** Runs a turn with one model call, and checks the chat and its follower after the turn. */
const runTurn = async (answer: (call: ModelCall) => void, check: (chat: Chat, follower: Follower) => void) => {
  await using world = await openModelWorld();
  await addModel(world);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  answer(await world.upstream.next());
  await follower.until(({ status }) => status === "waiting" || status === "error");
  expect(world.upstream.calls).toHaveLength(1);
  check(await world.owner.get<Chat>(`/api/v2/chats/${id}`), follower);
};

describe("an unusual end", () => {
  test.each([
    ["no finish reason", DONE],
    ["token counts as strings", toUsageChunk({ prompt_tokens: "10", completion_tokens: "2" }) + DONE],
    [
      "token details as a list",
      toUsageChunk({ prompt_tokens: 10, completion_tokens: 2, prompt_tokens_details: [] }) + DONE,
    ],
    ["a number as the finish reason", toEndChunk(5) + DONE],
    ["a string as the usage", toEvent({ id: "c1", choices: [], usage: "10" }) + toEndChunk("stop") + DONE],
  ])("[MO-44] accepts an answer with %s as complete, and requests it once", (_, end) =>
    runTurn(
      (call) =>
        call
          .sendRaw(toChunk({ content: "hello there" }))
          .sendRaw(end)
          .end(),
      (chat, follower) => {
        expect([chat.status, chat.last_error]).toEqual(["waiting", undefined]);
        expect(follower.history).toEqual(["user: hello", "assistant: hello there"]);
      },
    ),
  );
});

test("[CH-53] an answer with endless calls ends the turn with an error, and is requested once", () =>
  runTurn(
    (one) => {
      const start = (index: number) => ({
        index,
        id: `call-${index}`,
        type: "function",
        function: { name: "look", arguments: "{" },
      });
      for (let index = 0; index < 1_000; index += 100)
        one.sendRaw(toChunk({ tool_calls: Array.from({ length: 100 }, (_, at) => start(index + at)) }));
    },
    ({ last_error }) => {
      expect(last_error?.message).toContain("longer than a message can be, and was ended");
      expect(last_error?.detail).toContain("more than 512 tool calls");
    },
  ));

test("[MO-44] decodes chunks correctly at any split", async () => {
  await using world = await openModelWorld();
  await addModel(world);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  const call = await world.upstream.next();
  const text = 'Zażółć "finish_reason":"stop" gęślą';
  const response = toChunk({ content: text }) + toUsageChunk({ prompt_tokens: "10" }) + DONE;
  for (let start = 0; start < response.length; start += 7) call.sendRaw(response.slice(start, start + 7));
  call.end();
  await follower.until(({ status }) => status === "waiting");
  expect(follower.history[1]).toBe(`assistant: ${text}`);
});

test("[MO-44] accepts arguments as an object, and ends the turn with an error when the answer is a web page", async () => {
  await using world = await openModelWorld();
  await addModel(world);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  (await world.upstream.next()).sendRaw(toCallChunk({ query: "nothing" }) + toEndChunk("tool_calls") + DONE).end();
  const next = await world.upstream.next();
  expect(JSON.stringify(next.body)).toContain('{\\"query\\":\\"nothing\\"}');
  next.answer(200, "<html>Please sign in</html>", { "content-type": "text/html; charset=utf-8" });
  await follower.until(({ status }) => status === "error");
  const { last_error } = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
  expect(last_error).toMatchObject({ kind: "config", message: expect.stringContaining("web page"), retryable: false });
});

test("[MO-44] accepts one JSON object instead of a stream, including its calls; an error object ends the turn", async () => {
  await using world = await openModelWorld();
  await addModel(world);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  const toolCall = { id: "call-1", type: "function", function: { name: "no_such_tool", arguments: "{}" } };
  const json = { "content-type": "application/json" };
  const toCompletion = (message: object, finish_reason: string) => ({ id: "1", choices: [{ message, finish_reason }] });
  (await world.upstream.next()).answer(
    200,
    toCompletion({ role: "assistant", tool_calls: [toolCall] }, "tool_calls"),
    json,
  );
  const next = await world.upstream.next();
  expect(JSON.stringify(next.body)).toContain("no_such_tool");
  next.answer(200, toCompletion({ role: "assistant", content: "In one piece." }, "stop"), json);
  await follower.until(({ status }) => status === "waiting");
  expect(follower.history.at(-1)).toBe("assistant: In one piece.");

  await sendMessage(world, id, "and now");
  const error = { message: "The model test-model does not exist", code: "model_not_found" };
  (await world.upstream.next()).answer(200, { error }, json);
  await follower.until(({ status }) => status === "error");
  const { last_error } = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
  expect(last_error).toMatchObject({
    kind: "config",
    detail: expect.stringContaining("does not exist"),
    retryable: false,
  });
});

test.each(["length", "tool_calls", "stop"])(
  "[TO-7] does not run a call that breaks off before its last brace (finish reason %s)",
  async (reason) => {
    await using world = await openModelWorld();
    await addModel(world);
    const { id } = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, id);
    (await world.upstream.next()).sendRaw(toCallChunk('{"query":"half of it"') + toEndChunk(reason) + DONE).end();
    const next = await world.upstream.next();
    expect(JSON.stringify(next.body)).toMatch(/cut off|not complete JSON|not valid/i);
    next.say({ text: "I see." }, { finish: "stop" }).end();
    await follower.until(({ status }) => status === "waiting");
  },
);

test("[MO-45] keeps and marks an answer that the filter cuts off; an empty answer at the output limit ends with an error", async () => {
  await runTurn(
    (call) => call.say({ text: "half" }, { finish: "content_filter" }).end(),
    (chat, follower) => {
      expect(chat.status).toBe("waiting");
      expect(follower.history.slice(1)).toEqual(["assistant: half", expect.stringContaining("content filter cut off")]);
    },
  );
  await runTurn(
    (call) => call.say({ finish: "length" }).end(),
    ({ last_error }) =>
      expect(last_error).toMatchObject({ kind: "config", message: expect.stringContaining("output limit") }),
  );
});

test("[CH-48] the stream shows that a chat waits for a slot, also to late followers, and clears that", async () => {
  await using world = await openChatWorld({ env: { SLIPWAY_CHAT_SLOTS: "1" } });
  await createChat(world, "one");
  const firstCall = await world.models.next();
  const { id } = await createChat(world, "two");
  using follower = await Follower.open(world.owner, id);
  const listCapacityChanges = ({ events }: Follower) =>
    events.flatMap((event) => (event.type === "status" ? (event.status.queued_for_capacity ?? []) : []));
  await follower.until((state) => listCapacityChanges(state).length === 1);
  const warnings = follower.events.flatMap((event) => (event.type === "status" ? (event.status.warnings ?? []) : []));
  expect(warnings).toEqual([expect.stringContaining("waits for a free slot")]);
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).queued_for_capacity).toBe(true);
  firstCall.finish();
  await follower.until((state) => listCapacityChanges(state).length === 2);
  expect(listCapacityChanges(follower)).toEqual([true, false]);
  (await world.models.next()).finish();
  await follower.until(({ status }) => status === "waiting");

  // Interrupting a turn that waits also clears it.
  await createChat(world, "three");
  const thirdCall = await world.models.next();
  const interruptedChat = await createChat(world, "four");
  using interruptedFollower = await Follower.open(world.owner, interruptedChat.id);
  await interruptedFollower.until((state) => listCapacityChanges(state).length === 1);
  await world.owner.post(`/api/v2/chats/${interruptedChat.id}/interrupt`);
  await interruptedFollower.until((state) => listCapacityChanges(state).length === 2 && state.status === "waiting");
  thirdCall.finish();
});
