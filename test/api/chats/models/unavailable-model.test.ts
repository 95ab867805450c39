// A chat whose model is no longer available: its history is sent to another provider only if the user asks.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { addModel, MODEL_KEY, openModelWorld } from "#test/support/models/model-world.ts";

const MODELS = "/api/v2/chats/model-configs";
const PROVIDERS = "/api/v2/chats/providers";

/** Opens a chat with a private history on its own model, while the default model belongs to another provider. */
const openPrivateChat = async () => {
  const world = await openModelWorld();
  const defaultModel = await addModel(world);
  const ownModel = await addModel(world, "anthropic", { is_default: false });
  const chat = await createChat(world, "a secret", { model_config_id: ownModel.model.id });
  const follower = await Follower.open(world.owner, chat.id);
  const call = await world.upstream.next();
  call.say({ text: "kept" }, { finish: "stop" }).end();
  await follower.until(({ status, history }) => status === "waiting" && history.length === 2);
  const providerPath = `${PROVIDERS}/${ownModel.provider.id}`;
  const modelPath = `${MODELS}/${ownModel.model.id}`;
  return {
    world,
    chat,
    follower,
    defaultModel,
    ownModel,
    providerPath,
    modelPath,
    async [Symbol.asyncDispose]() {
      follower[Symbol.dispose]();
      await world[Symbol.asyncDispose]();
    },
  };
};
type PrivateChat = Awaited<ReturnType<typeof openPrivateChat>>;

const CASES: {
  name: string;
  disable: (opened: PrivateChat) => Promise<unknown>;
  error: Record<string, unknown>;
}[] = [
  {
    name: "its provider is disabled",
    disable: ({ world, providerPath }) => world.owner.patch(providerPath, { enabled: false }),
    error: { kind: "provider_disabled", provider: "anthropic" },
  },
  {
    name: "its key is removed",
    disable: ({ world, providerPath }) => world.owner.patch(providerPath, { api_key: "" }),
    error: { kind: "missing_key", provider: "anthropic" },
  },
  {
    name: "it is disabled",
    disable: ({ world, modelPath }) => world.owner.patch(modelPath, { enabled: false }),
    error: { kind: "provider_disabled", message: expect.stringContaining("model of this chat is disabled") },
  },
  {
    name: "it is removed",
    disable: ({ world, modelPath }) => world.owner.fetch("DELETE", modelPath),
    error: { kind: "config", message: expect.stringContaining("has been removed") },
  },
  {
    name: "its provider is removed",
    disable: ({ world, providerPath }) => world.owner.fetch("DELETE", providerPath),
    error: { kind: "config", message: expect.stringContaining("has been removed") },
  },
];

test.each(CASES)(
  "[MO-34] when $name, the turn ends, and no other provider gets the chat, not even for a title",
  async ({ disable, error }) => {
    await using opened = await openPrivateChat();
    const { world, chat, follower, ownModel } = opened;
    const callsBefore = world.upstream.calls.length;
    await disable(opened);
    await sendMessage(world, chat.id, "another secret");
    await follower.until(({ status }) => status === "error");
    const failed = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
    expect(failed.last_error).toMatchObject({ ...error, retryable: false });
    expect(failed.last_model_config_id).toBe(ownModel.model.id);
    await world.owner.post<unknown>(`/api/v2/chats/${chat.id}/title/propose`, {});
    const laterBodies = world.upstream.calls.slice(callsBefore).map(({ body }) => JSON.stringify(body));
    expect(laterBodies.filter((body) => body.includes("secret"))).toEqual([]);
    const message = { content: [{ type: "text", text: "x" }], model_config_id: ownModel.model.id };
    expect((await world.owner.fetch("POST", `/api/v2/chats/${chat.id}/messages`, message)).status).toBe(400);
  },
);

test("[MO-34] a chat continues with its own model once it is available again, or with another one that the user chooses", async () => {
  await using opened = await openPrivateChat();
  const { world, chat, follower, defaultModel, ownModel, providerPath } = opened;
  await world.owner.patch(providerPath, { api_key: "" });
  await sendMessage(world, chat.id, "one");
  await follower.until(({ status }) => status === "error");
  await world.owner.patch(providerPath, { api_key: MODEL_KEY });
  await sendMessage(world, chat.id, "two");
  (await world.upstream.next()).say({ text: "own" }, { finish: "stop" }).end();
  await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: own");
  await sendMessage(world, chat.id, "three", { model_config_id: defaultModel.model.id });
  const call = await world.upstream.next();
  expect(call.body).toMatchObject({ model: "test-model" });
  call.say({ text: "other" }, { finish: "stop" }).end();
  await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: other");
  expect(ownModel.model.id).not.toBe(defaultModel.model.id);
});

test("[MO-34] a queued message whose model was disabled uses the default model; a warning stays until the next message", async () => {
  await using opened = await openPrivateChat();
  const { world, chat, follower, defaultModel, ownModel, modelPath } = opened;
  const getWarnings = async () => (await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`)).warnings;
  await sendMessage(world, chat.id, "first");
  const runningCall = await world.upstream.next();
  await sendMessage(world, chat.id, "waits");
  await world.owner.patch(modelPath, { enabled: false });
  runningCall.say({ text: "done" }, { finish: "stop" }).end();
  const call = await world.upstream.next();
  expect(call.body).toMatchObject({ model: "test-model" });
  const switched = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
  expect(switched.last_model_config_id).toBe(defaultModel.model.id);
  expect(switched.warnings).toEqual([expect.stringContaining("asked for the model")]);
  call.say({ text: "by default" }, { finish: "stop" }).end();
  await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: by default");
  expect(await getWarnings()).toHaveLength(1);
  await sendMessage(world, chat.id, "next");
  (await world.upstream.next()).say({ text: "yes" }, { finish: "stop" }).end();
  await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: yes");
  expect(await getWarnings()).toEqual([]);
  expect(ownModel.model.id).not.toBe(switched.last_model_config_id);
});
