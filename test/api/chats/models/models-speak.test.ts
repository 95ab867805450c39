// Conversations with models of each kind, over a real socket in the provider's protocol, through the public API.
import { describe, expect, test } from "bun:test";
import type { MessagePage } from "#schema/chats/chat.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { addModel, MODEL_KEY, openModelWorld } from "#test/support/models/model-world.ts";

const KINDS: ProviderKind[] = ["openai-compat", "openai", "anthropic", "google"];
/** A model known as an OpenAI reasoning model. */
const REASONING_MODEL = { model: "gpt-5" };
const TOOLS = [{ name: "lookup", description: "Looks up", input_schema: { type: "object", properties: {} } }];
type ModelWorld = Awaited<ReturnType<typeof openModelWorld>>;

const getLastMessage = async ({ owner }: ModelWorld, id: string) =>
  (await owner.get<MessagePage>(`/api/v2/chats/${id}/messages`)).messages[0];

describe.each(KINDS)("a model of the kind %s", (kind) => {
  test("[MO-30] streams text and reasoning, and reports its tokens and the model's context limit", async () => {
    await using world = await openModelWorld();
    const { model } = await addModel(world, kind, REASONING_MODEL);
    const chat = await createChat(world, "hello", { system_prompt: "be brief" });
    expect(chat.last_model_config_id).toBe(model.id);
    using follower = await Follower.open(world.owner, chat.id);
    const call = await world.upstream.next();
    expect(JSON.stringify(call.body)).toContain("hello");
    expect(JSON.stringify(call.body)).toContain("be brief");
    expect([...call.headers.values()].join(" ")).toContain(MODEL_KEY);
    call.say({ reasoning: "let me think" }, { text: "Hello " });
    await follower.until(({ preview }) => preview.includes("Hello "));
    call.say({ text: "there" }, { finish: "stop", usage: { input: 7, output: 5 } }).end();
    await follower.until(({ status }) => status === "waiting");
    const message = await getLastMessage(world, chat.id);
    expect(message?.content.map(({ type, text }) => `${type}: ${text}`)).toEqual([
      "reasoning: let me think",
      "text: Hello there",
    ]);
    expect(message?.usage).toMatchObject({ input_tokens: 7, output_tokens: 5, context_limit: 64_000 });
    expect(JSON.stringify([message, follower.events])).not.toContain("provider_metadata");
  });

  test("[MO-31] gets the client's tools; a call waits for the client, and its result is sent back", async () => {
    await using world = await openModelWorld();
    await addModel(world, kind, REASONING_MODEL);
    const chat = await createChat(world, "look it up", { unsafe_dynamic_tools: TOOLS });
    using follower = await Follower.open(world.owner, chat.id);
    const call = await world.upstream.next();
    expect(JSON.stringify(call.body)).toContain('"lookup"');
    call.say({ reasoning: "which one?" }, { call: { id: "call_1", name: "lookup", args: '{"word":"tea"}' } });
    call.say({ finish: "tool_calls" }).end();
    await follower.until(({ events }) => events.some(({ type }) => type === "action_required"));
    const actionEvent = follower.events.find((event) => event.type === "action_required");
    expect(actionEvent?.action_required.tool_calls).toMatchObject([{ tool_name: "lookup", args: '{"word":"tea"}' }]);
    const id = actionEvent?.action_required.tool_calls[0]?.tool_call_id;
    const results = [{ tool_call_id: id, output: { found: "a leaf" } }];
    await world.owner.post<unknown>(`/api/v2/chats/${chat.id}/tool-results`, { results });
    const nextCall = await world.upstream.next();
    expect(JSON.stringify(nextCall.body)).toContain("a leaf");
    if (kind === "openai") expect(JSON.stringify(nextCall.body)).toContain('"encrypted_content":"sealed-thoughts"');
    if (kind === "anthropic") expect(JSON.stringify(nextCall.body)).toContain('"signature":"signed"');
    nextCall.say({ text: "It is a leaf." }, { finish: "stop" }).end();
    await follower.until(({ status, history }) => status === "waiting" && history.length === 4);
    expect(follower.history.at(-1)).toBe("assistant: It is a leaf.");
  });

  test("[MO-32] is interrupted immediately, and its output is kept", async () => {
    await using world = await openModelWorld();
    await addModel(world, kind);
    const chat = await createChat(world, "talk");
    using follower = await Follower.open(world.owner, chat.id);
    const call = await world.upstream.next();
    call.say({ text: "Once upon" });
    await follower.until(({ preview }) => preview === "Once upon");
    await world.owner.post(`/api/v2/chats/${chat.id}/interrupt`);
    await follower.until(({ status }) => status === "waiting");
    expect(follower.history.at(-1)).toBe("assistant: Once upon");
    if (kind === "openai-compat") await call.gone;
  });
});

describe("a conversation", () => {
  test("[MO-33] sends the model the current history and the requested effort", async () => {
    await using world = await openModelWorld();
    await addModel(world, "openai-compat", {
      model_config: { reasoning: { max: "medium" }, temperature: 0.5, max_output_tokens: 99 },
    });
    const chat = await createChat(world, "first", { reasoning_effort: "high" });
    using follower = await Follower.open(world.owner, chat.id);
    (await world.upstream.next()).say({ text: "one" }, { finish: "stop" }).end();
    await follower.until(({ status, history }) => status === "waiting" && history.length === 2);
    await sendMessage(world, chat.id, "second");
    const { body } = await world.upstream.next();
    expect(body).toMatchObject({
      model: "test-model",
      stream: true,
      reasoning_effort: "medium",
      temperature: 0.5,
      max_tokens: 99,
    });
    expect((body.messages as { role: string; content: string }[]).filter(({ role }) => role !== "system")).toEqual([
      { role: "user", content: "first" },
      { role: "assistant", content: "one" },
      { role: "user", content: "second" },
    ]);
  });
});
