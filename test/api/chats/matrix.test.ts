// A table of all providers and dialects with their differences: each row describes what a server of that kind receives and sends. The
// tests use real sockets in each protocol (test/support/models/model-frames.ts, model-dialects.ts).
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ChatMessage, MessagePage } from "#schema/chats/chat.ts";
import type { ChatCost } from "#schema/chats/chat-cost.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { type McpHost, PIXEL, startMcpHost } from "#test/mcp/support.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { DIALECTS, type Dialect, toPromptTooLong, toStreamError } from "#test/support/models/model-dialects.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, type ModelWorld, openModelWorld } from "#test/support/models/model-world.ts";
import { until } from "#test/support/until.ts";

type Json = Record<string, unknown>;
type Row = {
  readonly name: string;
  readonly kind: ProviderKind;
  /** The server's path, if it differs from its kind's. */
  readonly base?: string;
  readonly model?: Json;
  /** Call IDs as its models create them. */
  readonly ids?: readonly [string, string];
  /** The place of a tool's image in the next request; "none" if the model accepts no images. */
  readonly picture: "in the result" | "behind the result" | "none";
  /** JSON text of the reasoning that the next request contains; undefined if reasoning is not sent back. */
  readonly thought: string | undefined;
  /** Cached prompt tokens as this provider reports them; 0 if it does not. */
  readonly cached: number;
  /** The response to a prompt that is too long. */
  readonly tooLong: { status: number; body: unknown };
  /** A transient error in the middle of the stream. */
  readonly streamError: string;
};

const sse = (event: Json): string => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
const openAiError = { message: "The server had an error", type: "server_error", param: null, code: null };
const openAiTooLong = {
  status: 400,
  body: {
    error: {
      ...openAiError,
      message: "too many tokens",
      type: "invalid_request_error",
      code: "context_length_exceeded",
    },
  },
};

const toDialectRow = (name: Dialect, fields: Pick<Row, "picture"> & Partial<Row>): Row => ({
  name,
  kind: "openai-compat",
  base: `/${name}/v1`,
  thought: '"reasoning_content":"which one?"',
  cached: 70,
  tooLong: toPromptTooLong(name),
  streamError: toStreamError(name),
  ...fields,
});

const ROWS: readonly Row[] = [
  {
    name: "OpenAI chat",
    kind: "openai",
    picture: "behind the result",
    thought: undefined,
    cached: 70,
    model: { model: "gpt-4.1", model_config: { provider_options: { use_responses_api: false } } },
    tooLong: openAiTooLong,
    streamError: `data: ${JSON.stringify({ error: openAiError })}\n\n`,
  },
  {
    name: "OpenAI responses",
    kind: "openai",
    model: { model: "gpt-5" },
    picture: "in the result",
    cached: 70,
    thought: '"encrypted_content":"sealed-thoughts"',
    tooLong: openAiTooLong,
    streamError: sse({ type: "error", sequence_number: 9, error: openAiError }),
  },
  {
    name: "Anthropic",
    kind: "anthropic",
    picture: "in the result",
    thought: '"signature":"signed"',
    cached: 70,
    model: { model: "claude-sonnet-4-5" },
    tooLong: {
      status: 400,
      body: {
        type: "error",
        error: { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" },
      },
    },
    streamError: sse({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }),
  },
  {
    name: "Google",
    kind: "google",
    model: { model: "gemini-3-pro" },
    picture: "in the result",
    cached: 70,
    thought: '"thoughtSignature":"signed"',
    tooLong: {
      status: 400,
      body: {
        error: {
          code: 400,
          message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
          status: "INVALID_ARGUMENT",
        },
      },
    },
    streamError: `data: ${JSON.stringify({ error: { code: 503, message: "The model is overloaded.", status: "UNAVAILABLE" } })}\n\n`,
  },
  toDialectRow("vllm", { picture: "behind the result" }),
  toDialectRow("ollama", { picture: "behind the result", cached: 0 }),
  toDialectRow("llamacpp", { picture: "none", thought: '"reasoning_content":"\\nwhich one?\\n"' }),
  toDialectRow("deepseek", { picture: "none" }),
  toDialectRow("mistral", {
    picture: "behind the result",
    cached: 0,
    model: { model: "devstral-medium" },
    ids: ["abcdefgh1", "abcdefgh2"],
  }),
  toDialectRow("kimi", {
    picture: "behind the result",
    cached: 0,
    model: { model: "kimi-k2" },
    ids: ["functions.lookup:0", "functions.lookup:1"],
  }),
  toDialectRow("qwen", { picture: "behind the result" }),
  toDialectRow("zai", { picture: "behind the result" }),
  toDialectRow("xai", { picture: "behind the result" }),
  toDialectRow("groq", { picture: "behind the result", thought: undefined }),
  toDialectRow("lmstudio", { picture: "behind the result", cached: 0 }),
  toDialectRow("tgi", { picture: "behind the result", cached: 0 }),
];

const lookup = { name: "lookup", description: "Looks up", input_schema: { type: "object", properties: {} } };

test("[MO-43] the table has a row for each dialect", () => {
  expect(ROWS.flatMap(({ base = "" }) => DIALECTS.filter((dialect) => base.includes(dialect)))).toEqual([...DIALECTS]);
});

describe.each([...ROWS])("$name", (row) => {
  let world: ModelWorld;
  let host: McpHost;
  let server_id: string;
  beforeAll(async () => {
    world = await openModelWorld({ env: { SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8" } });
    host = startMcpHost();
    await addModel(world, row.kind, row.model, row.name, row.base);
    const path = `/api/v2/organizations/${world.organization_id}/mcp-servers`;
    server_id = (await world.owner.post<{ id: string }>(path, { slug: "eye", url: `${host.url}/mcp` })).id;
  });
  afterAll(async () => {
    await host[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  const startChat = async (fields: Json = {}): Promise<{ id: string; follower: Follower; call: ModelCall }> => {
    const { id } = await createChat(world, "hello", fields);
    const follower = await Follower.open(world.owner, id);
    return { id, follower, call: await world.upstream.next() };
  };
  const listMessages = async (id: string): Promise<ChatMessage[]> =>
    (await world.owner.get<MessagePage>(`/api/v2/chats/${id}/messages`)).messages.reverse();
  const toBodyText = ({ body }: ModelCall): string => JSON.stringify(body);
  const isIdle = ({ status }: Follower): boolean => status === "waiting";

  test("[MO-43] streams text as it arrives", async () => {
    const { follower, call } = await startChat();
    using _ = follower;
    call.say({ text: "Hello " });
    await follower.until(({ preview }) => preview === "Hello ");
    call.say({ text: "there" }, { finish: "stop" }).end();
    await follower.until(isIdle);
    expect(follower.history).toEqual(["user: hello", "assistant: Hello there"]);
  });

  test("[MO-43] calls tools in parallel, and sends each result back with its call", async () => {
    const { id, follower, call } = await startChat({ unsafe_dynamic_tools: [lookup] });
    using _ = follower;
    const [first, second] = row.ids ?? ["call_a", "call_b"];
    call.say({ call: { id: first, name: "lookup", args: '{"word":"tea","n":1}' } });
    call.say({ call: { id: second, name: "lookup", args: '{"word":"milk","n":2}' } }, { finish: "tool_calls" }).end();
    await follower.until(({ events }) => events.some(({ type }) => type === "action_required"));
    const calls = follower.events.find((event) => event.type === "action_required")?.action_required.tool_calls ?? [];
    expect(calls.map(({ args }) => JSON.parse(args))).toEqual([
      { word: "tea", n: 1 },
      { word: "milk", n: 2 },
    ]);
    const results = calls.map(({ tool_call_id }, index) => ({ tool_call_id, output: { found: `thing ${index}` } }));
    await world.owner.post(`/api/v2/chats/${id}/tool-results`, { results });
    const next = await world.upstream.next();
    for (const { tool_call_id } of calls) {
      // Google matches calls by order and name.
      if (row.kind !== "google") expect(toBodyText(next).split(`"${tool_call_id}"`)).toHaveLength(3);
    }
    expect(toBodyText(next).indexOf("thing 0")).toBeLessThan(toBodyText(next).indexOf("thing 1"));
    next.say({ text: "Both." }, { finish: "stop" }).end();
    await follower.until(isIdle);
    expect(follower.history.at(-1)).toBe("assistant: Both.");
  });

  test("[MO-42] [MO-43] sends a tool's image as an image, or a text that explains that the model cannot see it", async () => {
    const { id, follower, call } = await startChat({ mcp_server_ids: [server_id] });
    using _ = follower;
    call.say({ reasoning: "I look" }, { call: { id: "call_p", name: "eye__picture", args: "{}" } });
    call.say({ finish: "tool_calls" }).end();
    const next = await world.upstream.next();
    expect(findPicture(row, next.body)).toBe(row.picture);
    expect(toBodyText(next).length).toBeLessThan(toBodyText(call).length + 4_000);
    next.say({ text: "A pixel." }, { finish: "stop" }).end();
    await follower.until(isIdle);
    if (row.picture === "none") {
      expect(toBodyText(next)).toContain("this model takes only text");
      // The image is not sent again.
      const countImageCalls = () =>
        world.upstream.refused.filter((refused) => toBodyText(refused).includes("image_url")).length;
      expect(countImageCalls()).toBe(1);
      await sendMessage(world, id, "and now?");
      (await world.upstream.next()).say({ text: "Still words." }, { finish: "stop" }).end();
      await follower.until(
        ({ status, history }) => status === "waiting" && history.at(-1) === "assistant: Still words.",
      );
      expect(countImageCalls()).toBe(1);
    }
  });

  test("[MO-41] [MO-43] separates reasoning from text, and sends it back with the calls that it led to", async () => {
    const { id, follower, call } = await startChat({ unsafe_dynamic_tools: [lookup] });
    using _ = follower;
    const sendsReasoning = row.name !== "OpenAI chat";
    if (sendsReasoning) call.say({ reasoning: "which one?" });
    call
      .say({ text: "I look." }, { call: { id: "call_t", name: "lookup", args: "{}" } }, { finish: "tool_calls" })
      .end();
    await follower.until(({ status }) => status === "requires_action");
    const content = (await listMessages(id)).at(-1)?.content ?? [];
    const parts = content.map(({ type, text = "" }) => `${type}: ${text.trim()}`);
    expect(parts).toEqual([...(sendsReasoning ? ["reasoning: which one?"] : []), "text: I look.", "tool-call: "]);
    const results = [{ tool_call_id: content.at(-1)?.tool_call_id, output: "tea" }];
    await world.owner.post<unknown>(`/api/v2/chats/${id}/tool-results`, { results });
    const next = await world.upstream.next();
    if (row.thought) expect(toBodyText(next)).toContain(row.thought);
    else expect(toBodyText(next)).not.toContain("which one?");
    expect(toBodyText(next)).not.toContain("think>");
    next.say({ text: "Tea." }, { finish: "stop" }).end();
    await follower.until(isIdle);
  });

  test("[MO-30] [MO-43] counts cached tokens separately", async () => {
    const { id, follower, call } = await startChat();
    using _ = follower;
    call.say({ text: "Yes" }, { finish: "stop", usage: { input: 100, output: 20, cached: 70 } }).end();
    await follower.until(isIdle);
    const usage = (await listMessages(id)).at(-1)?.usage;
    expect(usage).toMatchObject({ input_tokens: 100 - row.cached, output_tokens: 20, total_tokens: 120 });
    expect(usage?.cache_read_tokens ?? 0).toBe(row.cached);
  });

  test("[MO-13] [MO-43] reports a prompt that is too long, and retries after an error during an answer", async () => {
    const { follower, call } = await startChat();
    using _ = follower;
    call.answer(row.tooLong.status, row.tooLong.body);
    await follower.until(({ status }) => status === "error");
    const event = follower.events.findLast(({ type }) => type === "error");
    const error = event?.type === "error" ? event.error : undefined;
    expect(error).toMatchObject({ kind: "config", message: expect.stringContaining("is too long for its model") });
    const interrupted = await startChat();
    using _second = interrupted.follower;
    interrupted.call.say({ text: "Well" }).sendRaw(row.streamError).end();
    await interrupted.follower.until(({ events }) => events.some(({ type }) => type === "retry"));
    const retryCall = await world.upstream.next();
    retryCall.say({ text: "Well, yes" }, { finish: "stop" }).end();
    await interrupted.follower.until(isIdle);
    expect(interrupted.follower.history).toEqual(["user: hello", "assistant: Well, yes"]);
  });

  test("[MO-39] [MO-43] continues an answer that reaches its limit", async () => {
    const { follower, call } = await startChat();
    using _ = follower;
    call.say({ text: "one, " }, { finish: "length" }).end();
    const next = await world.upstream.next();
    expect(toBodyText(next)).toContain("Go on exactly where it stopped");
    next.say({ text: "two" }, { finish: "stop" }).end();
    await follower.until(isIdle);
    expect(follower.history.filter((line) => !line.includes("["))).toEqual([
      "user: hello",
      "assistant: one, ",
      "assistant: two",
    ]);
  });

  test("[BU-11] [MO-32] [MO-43] an interruption keeps the output; the connection is closed, or read until the usage arrives", async () => {
    const { id, follower, call } = await startChat();
    using _ = follower;
    call.say({ reasoning: "hm" }, { text: "Once upon" });
    await follower.until(({ preview }) => preview.includes("Once upon"));
    await world.owner.post(`/api/v2/chats/${id}/interrupt`);
    await follower.until(isIdle);
    expect((await listMessages(id)).at(-1)?.content.at(-1)).toMatchObject({ type: "text", text: "Once upon" });
    if (row.kind === "openai-compat") await call.gone;
    else call.say({ finish: "stop", usage: { input: 100, output: 9_000 } }).end();
    const cost = await until(async () => {
      const cost = await world.owner.get<ChatCost>(`/api/v2/chats/${id}/cost`);
      return cost.request_count > 0 && cost;
    });
    if (row.kind === "openai-compat") expect(cost.output_tokens).toBeLessThan(10);
    else expect(cost.output_tokens).toBe(9_000);
  });
});

/** Returns the place of the image in a request. */
const findPicture = ({ kind }: Row, body: Json): Row["picture"] | "nowhere it should be" => {
  if (!JSON.stringify(body).includes(PIXEL)) return "none";
  const hasPicture = (value: unknown): boolean => JSON.stringify(value).includes(PIXEL);
  const { messages = [], input = [], contents = [] } = body as Record<string, Json[] | undefined>;
  if (kind === "google") {
    const results = contents.flatMap(({ parts }) => (parts as Json[]).flatMap((part) => part.functionResponse ?? []));
    return results.some(hasPicture) ? "in the result" : "nowhere it should be";
  }
  if (kind === "anthropic") {
    const results = messages.flatMap(({ content }) => (content as Json[]).filter(({ type }) => type === "tool_result"));
    return results.some(hasPicture) ? "in the result" : "nowhere it should be";
  }
  if (input.length > 0) {
    return input.some((item) => item.type === "function_call_output" && hasPicture(item))
      ? "in the result"
      : "nowhere it should be";
  }
  const resultIndex = messages.findLastIndex(({ role }) => role === "tool");
  const nextUserMessage = messages.slice(resultIndex + 1).find(({ role }) => role === "user");
  const images = ((nextUserMessage?.content ?? []) as Json[]).filter(({ type }) => type === "image_url");
  return nextUserMessage?.role === "user" && images.length === 2 && !hasPicture(messages[resultIndex])
    ? "behind the result"
    : "nowhere it should be";
};
