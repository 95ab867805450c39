// The ends of answers, over a real socket: a partial answer is never shown as complete, a paused one continues, and a prompt that is too
// long is recognized in any wording.
import { describe, expect, test } from "bun:test";
import type { Chat, ChatMessage, MessagePage } from "#schema/chats/chat.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, type ModelWorld, openModelWorld } from "#test/support/models/model-world.ts";

type Json = Record<string, unknown>;
const toEvent = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;
const toChunk = (delta: unknown, finish_reason: string | null = null): string =>
  toEvent({ id: "c1", choices: [{ index: 0, delta, finish_reason }] });

const openAnthropic = async (options: Parameters<typeof openModelWorld>[0] = {}): Promise<ModelWorld> => {
  const world = await openModelWorld(options);
  const model_config = { provider_options: { web_search_enabled: true } };
  await addModel(world, "anthropic", { model: "claude-x", model_config });
  return world;
};

describeInProcess("an answer whose end is a failure", () => {
  test.each(["network_error", "timeout", "engine_overloaded", "insufficient_system_resource"])(
    "[MO-62] with the finish reason %s, discards the first half and requests the answer again",
    async (finishReason) => {
      const clock = new ManualClock();
      await using world = await openModelWorld({ clock });
      await addModel(world);
      const { id } = await createChat(world, "hello");
      using follower = await Follower.open(world.owner, id);
      const call = await world.upstream.next();
      call
        .sendRaw(toChunk({ content: "half an ans" }))
        .sendRaw(toChunk({}, finishReason))
        .sendRaw("data: [DONE]\n\n")
        .end();
      await follower.until(() => follower.events.some(({ type }) => type === "retry"));
      await clock.timerIn(1_000);
      clock.advance(1_000);
      (await world.upstream.next()).say({ text: "whole" }, { finish: "stop" }).end();
      await follower.until(() => follower.status === "waiting");
      expect(follower.history).toEqual(["user: hello", "assistant: whole"]);
    },
  );
});

test("[MO-62] keeps an answer with an unknown finish reason, and shows it as incomplete", async () => {
  await using world = await openModelWorld();
  await addModel(world);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  const call = await world.upstream.next();
  call
    .sendRaw(toChunk({ content: "half an ans" }))
    .sendRaw(toChunk({}, "some_new_word"))
    .sendRaw("data: [DONE]\n\n")
    .end();
  await follower.until(() => follower.status === "waiting");
  expect(follower.history).toEqual([
    "user: hello",
    "assistant: half an ans",
    expect.stringContaining("without marking it as complete"),
  ]);
});

const toSearchCall = (index: number): string =>
  toEvent({
    type: "content_block_start",
    index,
    content_block: { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} },
  }) +
  toEvent({
    type: "content_block_delta",
    index,
    delta: { type: "input_json_delta", partial_json: '{"query":"tea"}' },
  }) +
  toEvent({ type: "content_block_stop", index });
const toSearchResult = (index: number): string => {
  const page = { type: "web_search_result", url: "https://tea.example", title: "Tea", encrypted_content: "sealed" };
  const content_block = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [page] };
  return (
    toEvent({ type: "content_block_start", index, content_block }) + toEvent({ type: "content_block_stop", index })
  );
};
const toMessageEnd = (stop_reason: string): string =>
  toEvent({ type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 5 } }) +
  toEvent({ type: "message_stop" });

describe("an answer that Anthropic has paused", () => {
  test("[MO-62] is sent back unchanged, and continues", async () => {
    await using world = await openAnthropic();
    const { id } = await createChat(world, "what is tea?");
    using follower = await Follower.open(world.owner, id);
    const firstCall = await world.upstream.next();
    firstCall.say({ text: "Let me search." }).sendRaw(toSearchCall(1)).sendRaw(toMessageEnd("pause_turn")).end();
    const continuation = await world.upstream.next();
    const lastMessage = (continuation.body.messages as Json[]).at(-1);
    expect(lastMessage).toMatchObject({
      role: "assistant",
      content: [
        { type: "text", text: "Let me search." },
        { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "tea" } },
      ],
    });
    continuation.sendRaw(toSearchResult(0)).say({ text: "It is a plant." }, { finish: "stop" }).end();
    await follower.until(() => follower.status === "waiting");
    const { messages } = await world.owner.get<MessagePage>(`/api/v2/chats/${id}/messages`);
    expect(JSON.stringify(messages)).toContain("It is a plant.");

    await sendMessage(world, id, "and coffee?");
    const nextCall = await world.upstream.next();
    const sentMessages = JSON.stringify(nextCall.body.messages);
    expect(sentMessages).toContain("server_tool_use");
    expect(sentMessages).toContain("web_search_tool_result");
    nextCall.say({ text: "Another." }, { finish: "stop" }).end();
  });

  test("[MO-62] continues at most ten times in a row; then the turn ends with a note that it is incomplete", async () => {
    await using world = await openAnthropic();
    const { id } = await createChat(world, "what is tea?");
    using follower = await Follower.open(world.owner, id);
    for (let times = 0; times < 11; times += 1) {
      const call = await world.upstream.next();
      call.say({ text: "More." }).sendRaw(toSearchCall(1)).sendRaw(toMessageEnd("pause_turn")).end();
    }
    await follower.until(() => follower.status === "waiting");
    expect(world.upstream.calls).toHaveLength(11);
    expect(follower.history.at(-1)).toContain("without marking it as complete");
  });
});

const LONG_TEXT = "word ".repeat(3_000);
/** Lets a chat exceed its context at the second message, expects a summary, and returns the history. */
const compactAfter = async (world: ModelWorld, refuse: (call: ModelCall) => void): Promise<string[]> => {
  const { id } = await createChat(world, LONG_TEXT);
  using follower = await Follower.open(world.owner, id);
  (await world.upstream.next()).say({ text: "One." }, { finish: "stop" }).end();
  await follower.until(() => follower.status === "waiting");
  await sendMessage(world, id, LONG_TEXT);
  refuse(await world.upstream.next());
  const summaryCall = await world.upstream.next();
  expect(JSON.stringify(summaryCall.body)).toContain("notes");
  summaryCall.say({ text: "The notes." }, { finish: "stop" }).end();
  const nextCall = await world.upstream.next();
  expect(JSON.stringify(nextCall.body)).toContain("The notes.");
  nextCall.say({ text: "Two." }, { finish: "stop" }).end();
  await follower.until(() => follower.status === "waiting" && follower.history.at(-1) === "assistant: Two.");
  return follower.history;
};

describe("a prompt that is too long", () => {
  test("[MO-62] an answer that fills the context triggers a compaction, and is requested again", async () => {
    await using world = await openAnthropic();
    const history = await compactAfter(world, (call) =>
      call.say({ text: "half" }).sendRaw(toMessageEnd("model_context_window_exceeded")).end(),
    );
    expect(history).not.toContain("assistant: half");
  });

  test("[CM-12] an unknown refusal triggers a compaction of a history near the limit", async () => {
    await using world = await openModelWorld();
    await addModel(world, "openai-compat", { context_limit: 12_000 });
    await compactAfter(world, (call) => call.answer(400, { error: { message: "La demande est refusee. (E-17)" } }));
  });

  test("[CM-12] an unknown refusal of a short history ends the turn without a compaction", async () => {
    await using world = await openModelWorld();
    await addModel(world, "openai-compat", { context_limit: 200_000 });
    const { id } = await createChat(world, LONG_TEXT);
    using follower = await Follower.open(world.owner, id);
    (await world.upstream.next()).answer(400, { error: { message: "La demande est refusee. (E-17)" } });
    await follower.until(() => follower.status === "error");
    expect(world.upstream.calls).toHaveLength(1);
    expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).last_error).toMatchObject({ kind: "generic" });
  });
});

describe("malformed streams of Anthropic's protocol", () => {
  const toMessageStart = (message: Json): string => toEvent({ type: "message_start", message });
  const toTextBlock = (index: number, text: string): string =>
    toEvent({ type: "content_block_start", index, content_block: { type: "text", text: "" } }) +
    toEvent({ type: "content_block_delta", index, delta: { type: "text_delta", text } }) +
    toEvent({ type: "content_block_stop", index });
  const MALFORMED_STREAMS: [string, string][] = [
    ["no usage", toMessageStart({ id: "m" }) + toTextBlock(0, "hello there") + toMessageEnd("end_turn")],
    [
      "a usage with null values",
      toMessageStart({ id: "m", usage: { input_tokens: null, output_tokens: null } }) +
        toTextBlock(0, "hello there") +
        toMessageEnd("end_turn"),
    ],
    [
      "an end without usage",
      toMessageStart({ id: "m", usage: { input_tokens: 1 } }) +
        toTextBlock(0, "hello there") +
        toEvent({ type: "message_delta", delta: { stop_reason: "end_turn" } }) +
        toEvent({ type: "message_stop" }),
    ],
    [
      "an end of only the last event",
      toMessageStart({ id: "m" }) + toTextBlock(0, "hello there") + toEvent({ type: "message_stop" }),
    ],
    ["no start event", toTextBlock(0, "hello there") + toMessageEnd("end_turn")],
    [
      "a block without a start, with null pieces",
      toMessageStart({ id: "m" }) +
        toEvent({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: null } }) +
        toEvent({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hello there" } }) +
        toMessageEnd("end_turn"),
    ],
    [
      "two start events, and a block without an end",
      toMessageStart({ id: "m" }) +
        toMessageStart({ id: "m" }) +
        toEvent({ type: "content_block_start", content_block: { type: "text" } }) +
        toEvent({ type: "content_block_delta", delta: { type: "text_delta", text: "hello there" } }) +
        toMessageEnd("end_turn"),
    ],
  ];

  test.each(MALFORMED_STREAMS)("[MO-44] accepts %s, and requests the answer once", async (_, stream) => {
    await using world = await openAnthropic();
    const { id } = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, id);
    const call = await world.upstream.next();
    call.answer(200, stream, { "content-type": "text/event-stream" });
    await follower.until(() => follower.status === "waiting" || follower.status === "error");
    expect(follower.history).toEqual(["user: hello", "assistant: hello there"]);
    expect(world.upstream.calls).toHaveLength(1);
  });

  test("[MO-44] runs interleaved calls, and calls with null or string arguments or without a usable ID, as intended", async () => {
    const toToolStart = (index: number, block: Json): string =>
      toEvent({
        type: "content_block_start",
        index,
        content_block: { type: "tool_use", name: "list_templates", ...block },
      });
    const toToolDelta = (index: number, partial_json: string): string =>
      toEvent({ type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json } });
    await using world = await openAnthropic();
    const { id } = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, id);
    const stream =
      toMessageStart({ id: "m" }) +
      toToolStart(0, { id: `toolu_${"1".repeat(2_000)}`, input: null }) +
      toToolStart(1, { id: "toolu_\u00002", input: {} }) +
      toToolDelta(1, '{"query":') +
      toToolDelta(0, "{}") +
      toToolDelta(1, '"a"}') +
      toToolStart(2, { input: '{"query":"b"}' }) +
      toMessageEnd("tool_use");
    (await world.upstream.next()).answer(200, stream, { "content-type": "text/event-stream" });
    const next = await world.upstream.next();
    const calls = (next.body.messages as { content: Json[] }[]).flatMap(({ content }) =>
      content.filter(({ type }) => type === "tool_use"),
    );
    expect(calls.map(({ input }) => input)).toEqual([{}, { query: "a" }, { query: "b" }]);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(3);
    const { messages } = await world.owner.get<{ messages: ChatMessage[] }>(`/api/v2/chats/${id}/messages`);
    const ids = messages.flatMap(({ content }) => content).flatMap(({ tool_call_id }) => tool_call_id ?? []);
    expect(ids).toHaveLength(6);
    for (const callId of ids) expect(callId).toMatch(/^[\w-]{1,256}$/);
    next.say({ text: "Done" }, { finish: "stop" }).end();
    await follower.until(() => follower.status === "waiting");
  });

  test("[MO-44] accepts a complete answer instead of a stream", async () => {
    await using world = await openAnthropic();
    const { id } = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, id);
    (await world.upstream.next()).answer(200, {
      id: "m",
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: "hello there" }],
      stop_reason: "end_turn",
      usage: { input_tokens: 1, output_tokens: 2 },
    });
    await follower.until(() => follower.status === "waiting" || follower.status === "error");
    expect(follower.history).toEqual(["user: hello", "assistant: hello there"]);
  });
});

test("[MO-44] keeps U+2028 and U+2029 in text, even in a chunk with malformed members", async () => {
  await using world = await openModelWorld();
  await addModel(world);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  const delta = '"choices":[{"index":0,"delta":{"content":"a\u2028b\u2029data: c"},"finish_reason":null}]';
  const call = await world.upstream.next();
  call
    .sendRaw(`data: {"id":"c1",${delta},"usage":{"prompt_tokens":"5","completion_tokens":1}}\n\n`)
    .sendRaw(toChunk({}, "stop"))
    .sendRaw("data: [DONE]\n\n")
    .end();
  await follower.until(() => follower.status === "waiting");
  expect(follower.history).toEqual(["user: hello", "assistant: a\u2028b\u2029data: c"]);
});
