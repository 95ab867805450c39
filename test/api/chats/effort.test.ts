// Reasoning effort of models, over a real socket: each provider gets its own parameters, and a message can set its effort.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { ModelConfig } from "#schema/chats/model-config.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";

type Fields = Record<string, unknown>;
const KINDS: readonly (readonly [kind: ProviderKind, model: string, config: Fields, expected: Fields])[] = [
  ["anthropic", "claude-opus-4-6", {}, { thinking: { type: "adaptive" }, output_config: { effort: "high" } }],
  ["openai", "gpt-5", {}, { reasoning: { effort: "high" } }],
  ["openai", "gpt-5-mini", { provider_options: { use_responses_api: false } }, { reasoning_effort: "high" }],
  ["google", "gemini-3-pro-preview", {}, { generationConfig: { thinkingConfig: { thinkingLevel: "high" } } }],
  ["openai-compat", "any", {}, { reasoning_effort: "high" }],
];

test("[EF-1] each provider gets the requested or default effort in its own form, at most its model's maximum", async () => {
  await using world = await openModelWorld();
  for (const [kind, model, config, expected] of KINDS) {
    const model_config = { ...config, reasoning: { default: "low", max: "high" } };
    const { model: added } = await addModel(world, kind, { model, model_config }, model);
    expect([model, added.reasoning_efforts.at(-1)]).toEqual([model, "high"]);
    await createChat(world, model, { model_config_id: added.id, reasoning_effort: "max" });
    const call = await world.upstream.next();
    expect(call.body).toMatchObject(expected);
    call.answer(400, { error: { message: "that will do" } });
  }
  await createChat(world, "and without");
  expect((await world.upstream.next()).body).toMatchObject({ model: "any", reasoning_effort: "low" });
});

test("[EF-2] [EF-3] a queued message keeps its model and effort; a model that refuses an effort does not get one again", async () => {
  await using world = await openModelWorld();
  const { model, provider } = await addModel(world);
  const otherModel = await world.owner.post<ModelConfig>("/api/v2/chats/model-configs", {
    provider_id: provider.id,
    model: "other",
    context_limit: 64_000,
  });
  const chat = await createChat(world, "first", { reasoning_effort: "high" });
  using follower = await Follower.open(world.owner, chat.id);
  const firstCall = await world.upstream.next();
  expect(firstCall.body).toMatchObject({ model: "test-model", reasoning_effort: "high" });
  const choice = { model_config_id: otherModel.id, reasoning_effort: "low" };
  await sendMessage(world, chat.id, "second", choice);
  await sendMessage(world, chat.id, "third");
  const chatBefore = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
  expect(chatBefore).toMatchObject({ last_model_config_id: model.id, last_reasoning_effort: "high" });
  firstCall.say({ text: "one" }, { finish: "stop" }).end();
  const secondCall = await world.upstream.next();
  expect(secondCall.body).toMatchObject({ model: "other", reasoning_effort: "low" });
  secondCall.answer(400, { error: { message: "Unrecognized request argument supplied: reasoning_effort" } });
  const retryCall = await world.upstream.next();
  expect(retryCall.body).not.toHaveProperty("reasoning_effort");
  retryCall.say({ text: "two" }, { finish: "stop" }).end();
  const thirdCall = await world.upstream.next();
  expect(thirdCall.body).toMatchObject({ model: "other" });
  expect(thirdCall.body).not.toHaveProperty("reasoning_effort");
  thirdCall.say({ text: "three" }, { finish: "stop" }).end();
  await follower.until(({ status, history }) => status === "waiting" && history.length === 6);
  const chatAfter = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
  expect(chatAfter).toMatchObject({ last_model_config_id: otherModel.id, last_reasoning_effort: "low" });
});
