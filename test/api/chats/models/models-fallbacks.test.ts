// Request features that a model server rejects: the request is retried without them, the model's settings show what was learned, and people
// may set it by hand. A bad tool of an MCP server never costs a chat more than that tool.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { ModelConfig } from "#schema/chats/model-config.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { startMcpHost } from "#test/mcp/support.ts";
import { createChat, Follower, loadHistory, sendMessage } from "#test/support/chats.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, type ModelWorld, openModelWorld } from "#test/support/models/model-world.ts";
import { until } from "#test/support/until.ts";

type Json = Record<string, unknown>;
const PRIVATE = { env: { SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8" } };
const findModel = async ({ owner }: ModelWorld, id: string): Promise<ModelConfig | undefined> =>
  (await owner.get<ModelConfig[]>("/api/v2/chats/model-configs")).find((one) => one.id === id);
const refuse = (call: ModelCall, message: string, status = 400): void =>
  call.answer(status, { error: { message, type: "invalid_request_error" } });
const answer = (call: ModelCall): void => call.say({ text: "hi" }, { finish: "stop" }).end();
const hasSystemPrompt = ({ body }: ModelCall): boolean =>
  (body.messages as Json[]).some(({ role }) => role === "system");

type Row = {
  readonly feature: string;
  readonly kind?: ProviderKind;
  readonly model?: Json;
  readonly words: string;
  readonly status?: number;
  /** Returns true if a request contains the feature. */
  readonly has: (call: ModelCall) => boolean;
};
const config = (more: Json): Json => ({ model_config: more });
const ROWS: readonly Row[] = [
  // Mistral, as in github.com/vybestack/llxprt-code/issues/114.
  {
    feature: "stream_options",
    words: "body.stream_options: Extra inputs are not permitted",
    status: 422,
    has: ({ body }) => "stream_options" in body,
  },
  {
    feature: "stream_options",
    kind: "openai",
    model: config({ provider_options: { use_responses_api: false } }),
    words: "Unrecognized request argument supplied: stream_options",
    has: ({ body }) => "stream_options" in body,
  },
  // Ollama, vLLM, llama.cpp, OpenRouter.
  {
    feature: "tools",
    words: "registry.ollama.ai/library/gemma3:latest does not support tools",
    has: ({ body }) => "tools" in body,
  },
  {
    feature: "tools",
    words: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    has: ({ body }) => "tools" in body,
  },
  { feature: "tools", words: "tools param requires --jinja flag", status: 500, has: ({ body }) => "tools" in body },
  {
    feature: "tools",
    words: "No endpoints found that support tool use.",
    status: 404,
    has: ({ body }) => "tools" in body,
  },
  {
    feature: "parallel_tool_calls",
    model: config({ provider_options: { parallel_tool_calls: true } }),
    words: "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
    has: ({ body }) => "parallel_tool_calls" in body,
  },
  {
    feature: "temperature",
    model: config({ temperature: 0.2 }),
    words: "invalid temperature: only 1 is allowed for this model",
    has: ({ body }) => "temperature" in body,
  },
  {
    feature: "top_p",
    model: config({ top_p: 0.5 }),
    words: "`top_p` is deprecated for this model.",
    has: ({ body }) => "top_p" in body,
  },
  {
    feature: "tool_streaming",
    kind: "anthropic",
    model: { model: "claude-x" },
    words: "tools.0.custom.eager_input_streaming: Extra inputs are not permitted",
    has: ({ body }) => JSON.stringify(body).includes("eager_input_streaming"),
  },
  // Gemma's templates.
  { feature: "system_role", words: "System role not supported", status: 500, has: hasSystemPrompt },
  {
    feature: "system_role",
    words: "'messages[0].role' does not support 'system' with this model.",
    has: hasSystemPrompt,
  },
  {
    feature: "max_output_tokens",
    model: config({ max_output_tokens: 50_000 }),
    words: "max_tokens is too large: 50000. This model supports at most 16384 completion tokens",
    has: ({ body }) => "max_tokens" in body,
  },
];

test.each([...ROWS])(
  "[MO-61] $feature is refused ($words): this request and later ones are sent without it",
  async (row) => {
    const { feature, kind = "openai-compat", model = {}, words, status, has } = row;
    await using world = await openModelWorld();
    const { model: created } = await addModel(world, kind, model);
    const { id } = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, id);
    const first = await world.upstream.next();
    expect(has(first)).toBe(true);
    refuse(first, words, status);
    const second = await world.upstream.next();
    expect(has(second)).toBe(false);
    expect(JSON.stringify(second.body)).toContain("hello");
    answer(second);
    await follower.until(() => follower.status === "waiting");
    expect(follower.history).toEqual(["user: hello", "assistant: hi"]);
    const learned = await until(async () => {
      const { model_config } = (await findModel(world, created.id)) ?? {};
      return model_config?.unsupported;
    });
    expect(learned).toEqual([feature] as never);

    await sendMessage(world, id, "again");
    const third = await world.upstream.next();
    expect(has(third)).toBe(false);
    answer(third);
  },
);

test("[MO-61] omitted parts can be set and removed by hand; an unknown name is refused", async () => {
  await using world = await openModelWorld();
  const { model } = await addModel(world, "openai-compat", config({ unsupported: ["tools", "system_role"] }));
  expect(model.model_config.unsupported).toEqual(["tools", "system_role"]);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  const first = await world.upstream.next();
  expect([first.body.tools, hasSystemPrompt(first)]).toEqual([undefined, false]);
  answer(first);
  await follower.until(() => follower.status === "waiting");

  const path = `/api/v2/chats/model-configs/${model.id}`;
  await expect(world.owner.patch(path, config({ unsupported: ["thinking"] }))).rejects.toMatchObject({ status: 400 });
  await world.owner.patch(path, config({ unsupported: [] }));
  await sendMessage(world, id, "again");
  const second = await world.upstream.next();
  expect([Array.isArray(second.body.tools), hasSystemPrompt(second)]).toEqual([true, true]);
  answer(second);
});

test("[MO-61] a model without tools gets an earlier model's calls as text", async () => {
  await using world = await openModelWorld();
  const { model: other } = await addModel(world, "openai-compat", config({ unsupported: ["tools"] }));
  await addModel(world, "anthropic", { model: "claude-x" });
  const { id } = await createChat(world, "look");
  using follower = await Follower.open(world.owner, id);
  const first = await world.upstream.next();
  first.say({ call: { id: "toolu_1", name: "list_templates", args: "{}" } }, { finish: "tool_calls" }).end();
  answer(await world.upstream.next());
  await follower.until(() => follower.status === "waiting");
  await sendMessage(world, id, "and now?", { model_config_id: other.id });
  const call = await world.upstream.next();
  const messages = call.body.messages as Json[];
  expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user", "assistant", "user"]);
  expect(JSON.stringify(messages)).toContain("[Called list_templates with {}]");
  expect(JSON.stringify(messages)).not.toContain("tool_calls");
  answer(call);
});

test("[MO-64] [MC-15] an invalid definition from an MCP server drops only that tool, and the chat names it", async () => {
  await using world = await openModelWorld(PRIVATE);
  await using host = startMcpHost();
  const route = { type: "object", properties: { route: {}, $filter: {} }, oneOf: [{ required: ["route"] }] };
  host.more = [
    { name: "bare", inputSchema: {} },
    { name: "nullish", description: null, inputSchema: { type: ["object", "null"] } },
    { name: "route", inputSchema: route },
    { name: "list", inputSchema: { type: "array", items: {} } },
    { description: "No name." },
    "no tool at all",
  ];
  await addModel(world, "anthropic", { model: "claude-x" });
  const path = `/api/v2/organizations/${world.organization_id}/mcp-servers`;
  const server = { slug: "wild", display_name: "Wild", url: `${host.url}/mcp`, availability: "force_on" };
  await world.owner.post(path, server);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  const call = await world.upstream.next();
  const names = (call.body.tools as { name: string }[])
    .map(({ name }) => name)
    .filter((one) => one.startsWith("wild__"));
  expect(names).toContain("wild__add");
  expect(names.slice(-3)).toEqual(["wild__bare", "wild__nullish", "wild__route"]);
  call.say({ call: { id: "toolu_1", name: "wild__echo", args: '{"a":1}' } }, { finish: "tool_calls" }).end();
  answer(await world.upstream.next());
  await follower.until(() => follower.status === "waiting");
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings).toEqual([
    'The tool "wild__list" of the MCP server "Wild" is left out: its input schema does not describe an object.',
  ]);
  expect(await loadHistory(world.owner, id)).toContain("assistant: hi");
});

test("[MO-64] tools above the model's limit: the request has as many as allowed, and the chat says which are missing", async () => {
  await using world = await openModelWorld(PRIVATE);
  await using host = startMcpHost();
  host.more = Array.from({ length: 150 }, (_, at) => ({ name: `many-${at}`, inputSchema: {} }));
  await addModel(world);
  const path = `/api/v2/organizations/${world.organization_id}/mcp-servers`;
  const server = { slug: "wild", display_name: "Wild", url: `${host.url}/mcp`, availability: "force_on" };
  await world.owner.post(path, server);
  const { id } = await createChat(world, "I need many-149 now");
  using follower = await Follower.open(world.owner, id);
  const call = await world.upstream.next();
  const names = (call.body.tools as { function: { name: string } }[]).map((one) => one.function.name);
  expect([names.length, names.includes("wild__many-149")]).toEqual([128, true]);
  answer(call);
  await follower.until(() => follower.status === "waiting");
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings).toEqual([
    expect.stringMatching(/^The model accepts at most 128 tools\. Left out of the MCP server "Wild": .* more\.$/),
  ]);
});
