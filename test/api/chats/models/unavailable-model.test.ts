// A chat's history is sent only to its own model: what happens when that model is no longer available.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { addModel, MODEL_KEY, openModelWorld } from "#test/support/models/model-world.ts";

const MODELS = "/api/v2/chats/model-configs";
const PROVIDERS = "/api/v2/chats/providers";

/** A chat with a private history on its own model; the default model belongs to another provider. */
const openPrivateChat = async () => {
  const world = await openModelWorld();
  const fallback = await addModel(world);
  const ownModel = await addModel(world, "anthropic", { is_default: false });
  const chat = await createChat(world, "a secret", { model_config_id: ownModel.model.id });
  const follower = await Follower.open(world.owner, chat.id);
  const call = await world.upstream.next();
  call.say({ text: "kept" }, { finish: "stop" }).end();
  await follower.until(({ status, history }) => status === "waiting" && history.length === 2);
  const provider = `${PROVIDERS}/${ownModel.provider.id}`;
  const model = `${MODELS}/${ownModel.model.id}`;
  return {
    world,
    chat,
    follower,
    fallback,
    mine: ownModel,
    provider,
    model,
    async [Symbol.asyncDispose]() {
      follower[Symbol.dispose]();
      await world[Symbol.asyncDispose]();
    },
  };
};
type Story = Awaited<ReturnType<typeof openPrivateChat>>;

const CASES: {
  name: string;
  lose: (story: Story) => Promise<unknown>;
  error: Record<string, unknown>;
}[] = [
  {
    name: "its provider is disabled",
    lose: ({ world, provider }) => world.owner.patch(provider, { enabled: false }),
    error: { kind: "provider_disabled", provider: "anthropic" },
  },
  {
    name: "its key is removed",
    lose: ({ world, provider }) => world.owner.patch(provider, { api_key: "" }),
    error: { kind: "missing_key", provider: "anthropic" },
  },
  {
    name: "it is disabled",
    lose: ({ world, model }) => world.owner.patch(model, { enabled: false }),
    error: { kind: "provider_disabled", message: expect.stringContaining("model of this chat is disabled") },
  },
  {
    name: "it is removed",
    lose: ({ world, model }) => world.owner.fetch("DELETE", model),
    error: { kind: "config", message: expect.stringContaining("has been removed") },
  },
  {
    name: "its provider is removed",
    lose: ({ world, provider }) => world.owner.fetch("DELETE", provider),
    error: { kind: "config", message: expect.stringContaining("has been removed") },
  },
];

test.each(CASES)(
  "[MO-34] when $name the turn ends, and no other provider sees the chat, not for its title either",
  async ({ lose, error }) => {
    await using story = await openPrivateChat();
    const { world, chat, follower, mine } = story;
    const before = world.upstream.calls.length;
    await lose(story);
    await sendMessage(world, chat.id, "another secret");
    await follower.until(({ status }) => status === "error");
    const now = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
    expect(now.last_error).toMatchObject({ ...error, retryable: false });
    expect(now.last_model_config_id).toBe(mine.model.id);
    await world.owner.post<unknown>(`/api/v2/chats/${chat.id}/title/propose`, {});
    const later = world.upstream.calls.slice(before).map(({ body }) => JSON.stringify(body));
    expect(later.filter((body) => body.includes("secret"))).toEqual([]);
    const named = { content: [{ type: "text", text: "x" }], model_config_id: mine.model.id };
    expect((await world.owner.fetch("POST", `/api/v2/chats/${chat.id}/messages`, named)).status).toBe(400);
  },
);

test("[MO-34] choosing another model continues with it, and the original model answers again once it can", async () => {
  await using story = await openPrivateChat();
  const { world, chat, follower, fallback, mine, provider } = story;
  await world.owner.patch(provider, { api_key: "" });
  await sendMessage(world, chat.id, "one");
  await follower.until(({ status }) => status === "error");
  await world.owner.patch(provider, { api_key: MODEL_KEY });
  await sendMessage(world, chat.id, "two");
  (await world.upstream.next()).say({ text: "own" }, { finish: "stop" }).end();
  await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: own");
  await sendMessage(world, chat.id, "three", { model_config_id: fallback.model.id });
  const call = await world.upstream.next();
  expect(call.body).toMatchObject({ model: "test-model" });
  call.say({ text: "other" }, { finish: "stop" }).end();
  await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: other");
  expect(mine.model.id).not.toBe(fallback.model.id);
});

test("[MO-34] a queued message whose model was deleted uses the default model, and a warning is shown until the next message", async () => {
  await using story = await openPrivateChat();
  const { world, chat, follower, fallback, mine, model } = story;
  const warnings = async () => (await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`)).warnings;
  await sendMessage(world, chat.id, "first");
  const running = await world.upstream.next();
  await sendMessage(world, chat.id, "waits");
  await world.owner.patch(model, { enabled: false });
  running.say({ text: "done" }, { finish: "stop" }).end();
  const call = await world.upstream.next();
  expect(call.body).toMatchObject({ model: "test-model" });
  const now = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
  expect(now.last_model_config_id).toBe(fallback.model.id);
  expect(now.warnings).toEqual([expect.stringContaining("asked for the model")]);
  call.say({ text: "by default" }, { finish: "stop" }).end();
  await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: by default");
  expect(await warnings()).toHaveLength(1);
  await sendMessage(world, chat.id, "next");
  (await world.upstream.next()).say({ text: "yes" }, { finish: "stop" }).end();
  await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: yes");
  expect(await warnings()).toEqual([]);
  expect(mine.model.id).not.toBe(now.last_model_config_id);
});
