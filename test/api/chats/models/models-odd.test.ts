// Slightly malformed answers of chat-completions servers, over a real socket: their content is kept, and incomplete calls are never run.
import { describe, expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { createChat, Follower, openChatWorld, sendMessage } from "#test/support/chats.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";

const DONE = "data: [DONE]\n\n";
const line = (chunk: unknown): string => `data: ${JSON.stringify(chunk)}\n\n`;
const chunk = (delta: unknown, more: object = {}): string =>
  line({ id: "c1", choices: [{ index: 0, delta, ...more }] });
const toEndChunk = (finish_reason: unknown): string => chunk({}, { finish_reason });
const usage = (counts: object): string =>
  line({ id: "c1", choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: counts });
const call = (args: unknown): string =>
  chunk({
    tool_calls: [{ index: 0, id: "call-1", type: "function", function: { name: "list_templates", arguments: args } }],
  });

/** Returns the chat once its turn has ended, with the follower that has seen it. */
const runTurn = async (answer: (call: ModelCall) => void, look: (chat: Chat, follower: Follower) => void) => {
  await using world = await openModelWorld();
  await addModel(world);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  answer(await world.upstream.next());
  await follower.until(({ status }) => status === "waiting" || status === "error");
  expect(world.upstream.calls).toHaveLength(1);
  look(await world.owner.get<Chat>(`/api/v2/chats/${id}`), follower);
};

describe("an odd end", () => {
  test.each([
    ["no finish reason", DONE],
    ["counts as texts", usage({ prompt_tokens: "10", completion_tokens: "2" }) + DONE],
    ["details that are a list", usage({ prompt_tokens: 10, completion_tokens: 2, prompt_tokens_details: [] }) + DONE],
    ["a finish reason that is a number", toEndChunk(5) + DONE],
    ["a usage that is a text", line({ id: "c1", choices: [], usage: "10" }) + toEndChunk("stop") + DONE],
  ])("[MO-44] %s: the answer is complete, and requested once", (_, end) =>
    runTurn(
      (one) =>
        one
          .sendRaw(chunk({ content: "hello there" }))
          .sendRaw(end)
          .end(),
      (chat, follower) => {
        expect([chat.status, chat.last_error]).toEqual(["waiting", undefined]);
        expect(follower.history).toEqual(["user: hello", "assistant: hello there"]);
      },
    ),
  );
});

test("[MO-44] chunks that are split anywhere are decoded correctly", async () => {
  await using world = await openModelWorld();
  await addModel(world);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  const requested = await world.upstream.next();
  const text = 'Zażółć "finish_reason":"stop" gęślą';
  const response = chunk({ content: text }) + usage({ prompt_tokens: "10" }) + DONE;
  for (let at = 0; at < response.length; at += 7) requested.sendRaw(response.slice(at, at + 7));
  requested.end();
  await follower.until(({ status }) => status === "waiting");
  expect(follower.history[1]).toBe(`assistant: ${text}`);
});

test("[MO-44] object arguments are accepted, and a web page instead of an answer ends the turn with a message", async () => {
  await using world = await openModelWorld();
  await addModel(world);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  (await world.upstream.next()).sendRaw(call({ query: "nothing" }) + toEndChunk("tool_calls") + DONE).end();
  const next = await world.upstream.next();
  expect(JSON.stringify(next.body)).toContain('{\\"query\\":\\"nothing\\"}');
  next.answer(200, "<html>Please sign in</html>", { "content-type": "text/html; charset=utf-8" });
  await follower.until(({ status }) => status === "error");
  const { last_error } = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
  expect(last_error).toMatchObject({ kind: "config", message: expect.stringContaining("web page"), retryable: false });
});

test("[MO-44] one JSON object instead of a stream is accepted as the answer, including calls; an error instead ends the turn", async () => {
  await using world = await openModelWorld();
  await addModel(world);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  const requested = { id: "call-1", type: "function", function: { name: "no_such_tool", arguments: "{}" } };
  const json = { "content-type": "application/json" };
  const toCompletion = (message: object, finish_reason: string) => ({ id: "1", choices: [{ message, finish_reason }] });
  (await world.upstream.next()).answer(
    200,
    toCompletion({ role: "assistant", tool_calls: [requested] }, "tool_calls"),
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
  "[TO-7] a call that breaks off before its last brace is not run: %s",
  async (reason) => {
    await using world = await openModelWorld();
    await addModel(world);
    const { id } = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, id);
    (await world.upstream.next()).sendRaw(call('{"query":"half of it"') + toEndChunk(reason) + DONE).end();
    const next = await world.upstream.next();
    expect(JSON.stringify(next.body)).toMatch(/cut off|not complete JSON|not valid/i);
    next.say({ text: "I see." }, { finish: "stop" }).end();
    await follower.until(({ status }) => status === "waiting");
  },
);

test("[MO-45] an answer that the filter ends is kept and marked as cut off; a limit that left no text is reported as such", async () => {
  await runTurn(
    (one) => one.say({ text: "half" }, { finish: "content_filter" }).end(),
    (chat, follower) => {
      expect(chat.status).toBe("waiting");
      expect(follower.history.slice(1)).toEqual(["assistant: half", expect.stringContaining("content filter cut off")]);
    },
  );
  await runTurn(
    (one) => one.say({ finish: "length" }).end(),
    ({ last_error }) =>
      expect(last_error).toMatchObject({ kind: "config", message: expect.stringContaining("output limit") }),
  );
});

test("[CH-48] a chat that waits for a slot says so on its stream, also to late joiners, and clears it", async () => {
  await using world = await openChatWorld({ env: { SLIPWAY_CHAT_SLOTS: "1" } });
  await createChat(world, "one");
  const first = await world.models.next();
  const { id } = await createChat(world, "two");
  using follower = await Follower.open(world.owner, id);
  const listQueuedFor = ({ events }: Follower) =>
    events.flatMap((event) => (event.type === "status" ? (event.status.queued_for_capacity ?? []) : []));
  await follower.until((one) => listQueuedFor(one).length === 1);
  const warnings = follower.events.flatMap((event) => (event.type === "status" ? (event.status.warnings ?? []) : []));
  expect(warnings).toEqual([expect.stringContaining("waits for a free slot")]);
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).queued_for_capacity).toBe(true);
  first.finish();
  await follower.until((one) => listQueuedFor(one).length === 2);
  expect(listQueuedFor(follower)).toEqual([true, false]);
  (await world.models.next()).finish();
  await follower.until(({ status }) => status === "waiting");

  // A turn stopped while waiting also takes it back.
  await createChat(world, "three");
  const third = await world.models.next();
  const stopped = await createChat(world, "four");
  using other = await Follower.open(world.owner, stopped.id);
  await other.until((one) => listQueuedFor(one).length === 1);
  await world.owner.post(`/api/v2/chats/${stopped.id}/interrupt`);
  await other.until((one) => listQueuedFor(one).length === 2 && one.status === "waiting");
  third.finish();
});
