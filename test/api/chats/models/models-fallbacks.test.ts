// Request features that a model server rejects: Slipway retries without them and shows them in the model's settings, where users can also
// change them. A chat loses only the invalid tools of an MCP server.
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
const WITH_PRIVATE_NETWORKS = { env: { SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8" } };
const findModel = async ({ owner }: ModelWorld, id: string): Promise<ModelConfig | undefined> =>
  (await owner.get<ModelConfig[]>("/api/v2/chats/model-configs")).find((config) => config.id === id);
const refuse = (call: ModelCall, message: string, status = 400): void =>
  call.answer(status, { error: { message, type: "invalid_request_error" } });
const answer = (call: ModelCall): void => call.say({ text: "hi" }, { finish: "stop" }).end();
const hasSystemPrompt = ({ body }: ModelCall): boolean =>
  (body.messages as Json[]).some(({ role }) => role === "system");

type Row = {
  readonly feature: string;
  readonly kind?: ProviderKind;
  readonly model?: Json;
  /** The message of the server's refusal. */
  readonly message: string;
  readonly status?: number;
  /** Returns true if a request contains the feature. */
  readonly isIncluded: (call: ModelCall) => boolean;
};
const toModel = (model_config: Json): Json => ({ model_config });
const ROWS: readonly Row[] = [
  // Mistral, as in github.com/vybestack/llxprt-code/issues/114.
  {
    feature: "stream_options",
    message: "body.stream_options: Extra inputs are not permitted",
    status: 422,
    isIncluded: ({ body }) => "stream_options" in body,
  },
  {
    feature: "stream_options",
    kind: "openai",
    model: toModel({ provider_options: { use_responses_api: false } }),
    message: "Unrecognized request argument supplied: stream_options",
    isIncluded: ({ body }) => "stream_options" in body,
  },
  // Ollama, vLLM, llama.cpp, OpenRouter.
  {
    feature: "tools",
    message: "registry.ollama.ai/library/gemma3:latest does not support tools",
    isIncluded: ({ body }) => "tools" in body,
  },
  {
    feature: "tools",
    message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    isIncluded: ({ body }) => "tools" in body,
  },
  {
    feature: "tools",
    message: "tools param requires --jinja flag",
    status: 500,
    isIncluded: ({ body }) => "tools" in body,
  },
  {
    feature: "tools",
    message: "No endpoints found that support tool use.",
    status: 404,
    isIncluded: ({ body }) => "tools" in body,
  },
  {
    feature: "parallel_tool_calls",
    model: toModel({ provider_options: { parallel_tool_calls: true } }),
    message: "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
    isIncluded: ({ body }) => "parallel_tool_calls" in body,
  },
  {
    feature: "temperature",
    model: toModel({ temperature: 0.2 }),
    message: "invalid temperature: only 1 is allowed for this model",
    isIncluded: ({ body }) => "temperature" in body,
  },
  {
    feature: "top_p",
    model: toModel({ top_p: 0.5 }),
    message: "`top_p` is deprecated for this model.",
    isIncluded: ({ body }) => "top_p" in body,
  },
  {
    feature: "tool_streaming",
    kind: "anthropic",
    model: { model: "claude-x" },
    message: "tools.0.custom.eager_input_streaming: Extra inputs are not permitted",
    isIncluded: ({ body }) => JSON.stringify(body).includes("eager_input_streaming"),
  },
  // Gemma's templates.
  { feature: "system_role", message: "System role not supported", status: 500, isIncluded: hasSystemPrompt },
  {
    feature: "system_role",
    message: "'messages[0].role' does not support 'system' with this model.",
    isIncluded: hasSystemPrompt,
  },
  {
    feature: "max_output_tokens",
    model: toModel({ max_output_tokens: 50_000 }),
    message: "max_tokens is too large: 50000. This model supports at most 16384 completion tokens",
    isIncluded: ({ body }) => "max_tokens" in body,
  },
];

test.each([...ROWS])(
  "[MO-61] retries without $feature after the refusal ($message), and omits it from later requests",
  async (row) => {
    const { feature, kind = "openai-compat", model = {}, message, status, isIncluded } = row;
    await using world = await openModelWorld();
    const { model: created } = await addModel(world, kind, model);
    const { id } = await createChat(world, "hello");
    using follower = await Follower.open(world.owner, id);
    const first = await world.upstream.next();
    expect(isIncluded(first)).toBe(true);
    refuse(first, message, status);
    const second = await world.upstream.next();
    expect(isIncluded(second)).toBe(false);
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
    expect(isIncluded(third)).toBe(false);
    answer(third);
  },
);

test("[MO-61] users can set and clear omitted features; unknown names are refused", async () => {
  await using world = await openModelWorld();
  const { model } = await addModel(world, "openai-compat", toModel({ unsupported: ["tools", "system_role"] }));
  expect(model.model_config.unsupported).toEqual(["tools", "system_role"]);
  const { id } = await createChat(world, "hello");
  using follower = await Follower.open(world.owner, id);
  const first = await world.upstream.next();
  expect([first.body.tools, hasSystemPrompt(first)]).toEqual([undefined, false]);
  answer(first);
  await follower.until(() => follower.status === "waiting");

  const path = `/api/v2/chats/model-configs/${model.id}`;
  await expect(world.owner.patch(path, toModel({ unsupported: ["thinking"] }))).rejects.toMatchObject({ status: 400 });
  await world.owner.patch(path, toModel({ unsupported: [] }));
  await sendMessage(world, id, "again");
  const second = await world.upstream.next();
  expect([Array.isArray(second.body.tools), hasSystemPrompt(second)]).toEqual([true, true]);
  answer(second);
});

test("[MO-61] a model without tools receives the calls of an earlier model as text", async () => {
  await using world = await openModelWorld();
  const { model: withoutTools } = await addModel(world, "openai-compat", toModel({ unsupported: ["tools"] }));
  await addModel(world, "anthropic", { model: "claude-x" });
  const { id } = await createChat(world, "look");
  using follower = await Follower.open(world.owner, id);
  const first = await world.upstream.next();
  first.say({ call: { id: "toolu_1", name: "list_templates", args: "{}" } }, { finish: "tool_calls" }).end();
  answer(await world.upstream.next());
  await follower.until(() => follower.status === "waiting");
  await sendMessage(world, id, "and now?", { model_config_id: withoutTools.id });
  const call = await world.upstream.next();
  const messages = call.body.messages as Json[];
  expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user", "assistant", "user"]);
  expect(JSON.stringify(messages)).toContain("[Called list_templates with {}]");
  expect(JSON.stringify(messages)).not.toContain("tool_calls");
  answer(call);
});

test("[MO-64] [MC-15] omits only the invalid tools of an MCP server, and names them in a warning of the chat", async () => {
  await using world = await openModelWorld(WITH_PRIVATE_NETWORKS);
  await using host = startMcpHost();
  const routeSchema = { type: "object", properties: { route: {}, $filter: {} }, oneOf: [{ required: ["route"] }] };
  host.extraTools = [
    { name: "bare", inputSchema: {} },
    { name: "nullish", description: null, inputSchema: { type: ["object", "null"] } },
    { name: "route", inputSchema: routeSchema },
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
    .filter((name) => name.startsWith("wild__"));
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

test("[MO-64] sends at most as many tools as the model allows, and warns about the omitted ones", async () => {
  await using world = await openModelWorld(WITH_PRIVATE_NETWORKS);
  await using host = startMcpHost();
  host.extraTools = Array.from({ length: 150 }, (_, index) => ({ name: `many-${index}`, inputSchema: {} }));
  await addModel(world);
  const path = `/api/v2/organizations/${world.organization_id}/mcp-servers`;
  const server = { slug: "wild", display_name: "Wild", url: `${host.url}/mcp`, availability: "force_on" };
  await world.owner.post(path, server);
  const { id } = await createChat(world, "I need many-149 now");
  using follower = await Follower.open(world.owner, id);
  const call = await world.upstream.next();
  const names = (call.body.tools as { function: { name: string } }[]).map((tool) => tool.function.name);
  expect([names.length, names.includes("wild__many-149")]).toEqual([128, true]);
  answer(call);
  await follower.until(() => follower.status === "waiting");
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings).toEqual([
    expect.stringMatching(/^The model accepts at most 128 tools\. Left out of the MCP server "Wild": .* more\.$/),
  ]);
});
