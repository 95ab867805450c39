// Publicly reported faults of model servers, simulated by the streams and rejections in the reports. Each title names its reports.
import { describe, expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatErrorKind } from "#schema/chats/chat-error.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";

type Json = Record<string, unknown>;
const toEvent = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;
const toChunk = (delta: Json, finish_reason: string | null = null): string =>
  toEvent({ id: "c1", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] });
const toToolChunk = (call: Json): string => toChunk({ tool_calls: [call] });
const DONE = `${toChunk({}, "tool_calls")}data: [DONE]\n\n`;
const toFunction = (args: unknown): Json => ({ name: "list_templates", arguments: args });
const ONE_QUERY = [{ query: "a" }];
const TWO_QUERIES = [{ query: "a" }, { query: "b" }];

type CallReport = { readonly report: string; readonly stream: string; readonly args: readonly unknown[] };
const CALLS: readonly CallReport[] = [
  {
    report: "shiaho777/web-to-app#395, open-webui#27195: null arguments in the first piece",
    stream:
      toToolChunk({ index: 0, id: "c", type: "function", function: toFunction(null) }) +
      toToolChunk({ index: 0, function: { arguments: '{"query":"a"}' } }),
    args: ONE_QUERY,
  },
  {
    report: "chatanywhere/GPT_API_free#254, AstrBot#6692: pieces without an index",
    stream:
      toToolChunk({ id: "c", type: "function", function: toFunction("") }) +
      toToolChunk({ function: { arguments: '{"query":"a"}' } }),
    args: ONE_QUERY,
  },
  {
    report: "SamSaffron/term-llm#314: several calls without an index",
    stream:
      toToolChunk({ id: "c", type: "function", function: toFunction('{"query":"a"}') }) +
      toToolChunk({ id: "d", type: "function", function: toFunction('{"query":"b"}') }),
    args: TWO_QUERIES,
  },
  {
    report: "LibreChat#13987: the index of later pieces differs from that of the first",
    stream:
      toToolChunk({ index: 0, id: "c", type: "function", function: toFunction("") }) +
      toToolChunk({ index: 1, function: { arguments: '{"query":"a"}' } }),
    args: ONE_QUERY,
  },
  {
    report: "run-llama/llama_index#17927: name and id are null in later pieces",
    stream:
      toToolChunk({ index: 0, id: "c", type: "function", function: toFunction("") }) +
      toToolChunk({ index: 0, id: null, type: null, function: { name: null, arguments: '{"query":' } }) +
      toToolChunk({ index: 0, id: "", function: { name: "", arguments: '"a"}' } }),
    args: ONE_QUERY,
  },
  {
    report: "sigoden/aichat#1296: calls whose id is null",
    stream:
      toToolChunk({ index: 0, id: null, type: "function", function: toFunction('{"query":"a"}') }) +
      toToolChunk({ index: 1, id: null, type: "function", function: toFunction('{"query":"b"}') }),
    args: TWO_QUERIES,
  },
  {
    report: "lmstudio-bug-tracker#649: the index is 0 for every call",
    stream:
      toToolChunk({ index: 0, id: "c", type: "function", function: toFunction('{"query":"a"}') }) +
      toToolChunk({ index: 0, id: "d", type: "function", function: toFunction('{"query":"b"}') }),
    args: TWO_QUERIES,
  },
  {
    report: "marimo-team/marimo#7330: the first index is not 0",
    stream: toToolChunk({ index: 1, id: "c", type: "function", function: toFunction('{"query":"a"}') }),
    args: ONE_QUERY,
  },
  {
    report: "QwenLM/qwen-code#6249, vercel/ai#6687: the arguments of a call without any are an empty string",
    stream: toToolChunk({ index: 0, id: "c", type: "function", function: toFunction("") }),
    args: [{}],
  },
  {
    report: "open-webui#22189: a call without arguments, and its end in a piece of its own",
    stream:
      toToolChunk({ index: 0, id: "c", type: "function", function: { name: "list_templates" } }) +
      toToolChunk({ index: 0, function: { arguments: "" } }),
    args: [{}],
  },
];

describe("calls of chat-completions servers", () => {
  test.each([...CALLS])("[MO-44] $report", async ({ stream, args }) => {
    await using world = await openModelWorld();
    await addModel(world);
    const { id } = await createChat(world, "look");
    using follower = await Follower.open(world.owner, id);
    (await world.upstream.next()).sendRaw(stream + DONE).end();
    const next = await world.upstream.next();
    const calls = (next.body.messages as { tool_calls?: { id: string; function: { arguments: string } }[] }[]).flatMap(
      ({ tool_calls = [] }) => tool_calls,
    );
    expect(calls.map((call) => JSON.parse(call.function.arguments))).toEqual([...args] as never);
    expect(JSON.stringify(next.body)).not.toMatch(/no result of this call|There is no tool/);
    next.say({ text: "Done" }, { finish: "stop" }).end();
    await follower.until(({ status }) => status === "waiting");
  });
});

type Failure = {
  readonly report: string;
  readonly kind?: ProviderKind;
  readonly error: Json;
  readonly expected: ChatErrorKind;
  readonly detail: string;
};
const FAILURES: readonly Failure[] = [
  {
    report: "apache/rocketmq-dashboard#2178",
    error: { error: { message: "quota exceeded" } },
    expected: "usage_limit",
    detail: "quota exceeded",
  },
  {
    report: "agentjido/req_llm#661",
    error: { error: "quota exceeded" },
    expected: "usage_limit",
    detail: "quota exceeded",
  },
  {
    report: "zendev-sh/goai#110",
    error: { error: { message: "Invalid API key." }, message: "Invalid API key." },
    expected: "auth",
    detail: "Invalid API key.",
  },
  {
    report: "vercel/ai#13506",
    error: { error: { message: "Context length exceeded", code: "CONTEXT_LENGTH_EXCEEDED" } },
    expected: "config",
    detail: "Context length exceeded",
  },
  {
    report: "ogx-ai/ogx#5224",
    kind: "openai",
    error: { type: "error", code: "insufficient_quota", message: "quota exceeded", param: null, sequence_number: 1 },
    expected: "usage_limit",
    detail: "quota exceeded",
  },
];
test.each([...FAILURES])(
  "[MO-12] $report: shows an error in a stream of status 200 instead of an empty answer",
  async ({ kind, error, expected, detail }) => {
    await using world = await openModelWorld();
    await addModel(world, kind);
    const { id } = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, id);
    const stream = `${toEvent(error)}data: [DONE]\n\n`;
    (await world.upstream.next()).answer(200, stream, { "content-type": "text/event-stream" });
    await follower.until(({ status }) => status === "error");
    const { last_error } = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
    expect(last_error).toMatchObject({ kind: expected, detail: expect.stringContaining(detail) });
    expect(follower.history).toEqual(["user: hello"]);
  },
);

test("[MO-44] BaseIntelligence/bounty-challenge#49580: arguments that are not JSON return an error, and are not replaced", async () => {
  await using world = await openModelWorld();
  await addModel(world);
  const { id } = await createChat(world, "look");
  using follower = await Follower.open(world.owner, id);
  const brokenCall = toToolChunk({ index: 0, id: "c", type: "function", function: toFunction("query=foo") });
  (await world.upstream.next()).sendRaw(brokenCall + DONE).end();
  const next = await world.upstream.next();
  const answers = (next.body.messages as Json[]).filter(({ role }) => role === "tool");
  expect(answers).toHaveLength(1);
  expect(String(answers[0]?.content)).toContain("error");
  expect(JSON.stringify(next.body)).not.toContain('\\"raw\\"');
  next.say({ text: "Done" }, { finish: "stop" }).end();
  await follower.until(({ status }) => status === "waiting");
});

test("[MO-44] earendil-works/pi#7441: accepts an answer that ends with token counts, without a finish reason or a last line", async () => {
  await using world = await openModelWorld();
  await addModel(world);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  const usageChunk = toEvent({
    id: "c1",
    choices: [],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  });
  (await world.upstream.next()).sendRaw(toChunk({ content: "hello there" }) + usageChunk).end();
  await follower.until(({ status }) => status === "waiting");
  expect(follower.history).toEqual(["user: hello", "assistant: hello there"]);
});

type TruncatedStream = {
  readonly report: string;
  readonly kind: ProviderKind;
  readonly model?: Json;
  readonly stream: string;
};
const TRUNCATED_STREAMS: readonly TruncatedStream[] = [
  { report: "opencode#39968: chat completions", kind: "openai-compat", stream: toChunk({ content: "half" }) },
  {
    report: "openclaw#108989: OpenAI's responses",
    kind: "openai",
    stream:
      toEvent({ type: "response.created", response: { id: "r", created_at: 1, model: "m" } }) +
      toEvent({ type: "response.output_item.added", output_index: 0, item: { type: "message", id: "i" } }) +
      toEvent({ type: "response.output_text.delta", item_id: "i", delta: "half" }),
  },
  {
    report: "BerriAI/litellm#32159: Anthropic's messages, in the middle of a call",
    kind: "anthropic",
    stream:
      toEvent({ type: "message_start", message: { id: "m", usage: { input_tokens: 1 } } }) +
      toEvent({
        type: "content_block_start",
        index: 0,
        content_block: { type: "tool_use", id: "toolu_1", name: "list_templates", input: {} },
      }) +
      toEvent({ type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"que' } }),
  },
  {
    report: "the same with Gemini",
    kind: "google",
    model: { model: "gemini-3-pro" },
    stream: toEvent({ candidates: [{ index: 0, content: { role: "model", parts: [{ text: "half" }] } }] }),
  },
];
test.each([...TRUNCATED_STREAMS])(
  "[MO-13] $report: retries after a stream that breaks off",
  async ({ kind, model, stream }) => {
    await using world = await openModelWorld();
    await addModel(world, kind, model);
    const { id } = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, id);
    (await world.upstream.next()).answer(200, stream, { "content-type": "text/event-stream" });
    await follower.until(({ events }) => events.some(({ type }) => type === "retry"));
    (await world.upstream.next()).say({ text: "whole" }, { finish: "stop" }).end();
    await follower.until(({ status }) => status === "waiting");
    expect(follower.history).toEqual(["user: hello", "assistant: whole"]);
  },
);

test("[MO-62] agentjido/req_llm#638: accepts a last event of Gemini with a finish reason and without parts", async () => {
  await using world = await openModelWorld();
  await addModel(world, "google", { model: "gemini-3-pro" });
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  const stream =
    toEvent({ candidates: [{ content: { role: "model", parts: [{ text: "hello there" }] } }] }) +
    toEvent({
      candidates: [{ finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2 },
    });
  (await world.upstream.next()).answer(200, stream, { "content-type": "text/event-stream" });
  await follower.until(({ status }) => status === "waiting");
  expect(follower.history).toEqual(["user: hello", "assistant: hello there"]);
});

/** Interrupts a turn after a tool call, and returns the model call of the next message. */
const callAfterInterruption = async (kind: ProviderKind, model: Json, base?: string): Promise<ModelCall> => {
  await using world = await openModelWorld();
  await addModel(world, kind, model, "Mine", base);
  const { id } = await createChat(world, "hello", {
    unsafe_dynamic_tools: [{ name: "ask", input_schema: { type: "object" } }],
  });
  using follower = await Follower.open(world.owner, id);
  const call = await world.upstream.next();
  call.say({ reasoning: "hm" }, { call: { id: "call_1", name: "ask", args: "{}" } }, { finish: "tool_calls" }).end();
  await follower.until(({ status }) => status === "requires_action");
  const calls = follower.events.find((event) => event.type === "action_required")?.action_required.tool_calls ?? [];
  const results = calls.map(({ tool_call_id }) => ({ tool_call_id, output: "no" }));
  await world.owner.post(`/api/v2/chats/${id}/tool-results`, { results });
  await world.upstream.next();
  await world.owner.post(`/api/v2/chats/${id}/interrupt`);
  await follower.until(({ status }) => status === "waiting");
  await sendMessage(world, id, "go on");
  const next = await world.upstream.next();
  expect(world.upstream.refused).toEqual([]);
  next.say({ text: "Yes" }, { finish: "stop" }).end();
  await follower.until(({ history }) => history.at(-1) === "assistant: Yes");
  return next;
};

test("[MO-63] mistralai/mistral-vibe#578, charmbracelet/crush#279: an interruption after a tool call keeps the order of messages", async () => {
  const { body } = await callAfterInterruption("openai-compat", { model: "mistral-small-4" }, "/mistral/v1");
  const roles = (body.messages as Json[]).map(({ role }) => role);
  expect(roles).toEqual(["system", "user", "assistant", "tool", "assistant", "user"]);
});

test("[MO-63] thClaws#144, microsoft/vscode#299295: an interrupted turn with Gemini keeps the result of its call", async () => {
  const { body } = await callAfterInterruption("google", { model: "gemini-3-pro" });
  expect(JSON.stringify(body.contents)).toMatch(/functionCall[\s\S]*functionResponse/);
});

test.each([
  ["tailcallhq/forgecode#3071: an answer with only reasoning", [{ reasoning: "hm" }]],
  ["anthropics/claude-code#20705: text before reasoning", [{ text: "Well. " }, { reasoning: "hm" }]],
])("[MO-63] %s can be interrupted and continued", async (_, parts) => {
  await using world = await openModelWorld();
  await addModel(world, "anthropic", { model: "claude-x" });
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  const call = await world.upstream.next();
  call.say(...(parts as Parameters<ModelCall["say"]>));
  await follower.until(({ events }) =>
    events.some((event) => event.type === "message_part" && event.message_part.part.text === "hm"),
  );
  await world.owner.post(`/api/v2/chats/${id}/interrupt`);
  await follower.until(({ status }) => status === "waiting");
  await sendMessage(world, id, "go on");
  const next = await world.upstream.next();
  expect(world.upstream.refused).toEqual([]);
  next.say({ text: "Yes" }, { finish: "stop" }).end();
  await follower.until(({ history }) => history.at(-1) === "assistant: Yes");
});
