// Models that an organization sets for titles and compactions of its chats: when they are called, and who can set them.
import { expect } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { ModelConfig } from "#schema/chats/model-config.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

const finish = (call: ModelCall, text: string, input = 10): void =>
  call.say({ text }, { finish: "stop", usage: { input, output: 5 } }).end();

testInProcess(
  "[MW-3] titles and compactions use the organization's models; a disabled model generates no title",
  async () => {
    await using world = await openModelWorld({ env: { SLIPWAY_CHAT_TITLES: "true" } });
    const { provider } = await addModel(world, "openai-compat", { context_limit: 1_000, compression_threshold: 50 });
    const small = await world.owner.post<ModelConfig>("/api/v2/chats/model-configs", {
      provider_id: provider.id,
      model: "small",
      context_limit: 64_000,
    });
    const path = `/api/v2/organizations/${world.organization_id}/chats/model-overrides`;
    const override = { mode: "model", model_config_id: small.id };
    const putOverride = async (context: string, body: unknown) =>
      (await world.owner.fetch("PUT", `${path}/${context}`, body)).status;
    expect([
      await putOverride("root", override),
      await putOverride("compaction", { mode: "model" }),
      await putOverride("compaction", { mode: "deployment_default" }),
      await putOverride("compaction", override),
      await putOverride("title_generation", { ...override, reasoning_effort: "low" }),
    ]).toEqual([400, 400, 400, 204, 204]);
    const { overrides } = await world.owner.get<{ overrides: unknown[] }>(path);
    expect(overrides).toEqual([
      { context: "general", mode: "chat_default" },
      { context: "explore", mode: "chat_default" },
      { context: "title_generation", ...override, reasoning_effort: "low" },
      { context: "compaction", ...override },
    ]);

    const answerNext = async (text: string, input?: number): Promise<unknown> => {
      const call = await world.upstream.next();
      finish(call, text, input);
      return call.body.model;
    };
    const waitForTitles = () => getContext(world.server).titles.whenIdle();
    const chat = await createChat(world, "a first message of more than six words");
    const calls = [await world.upstream.next(), await world.upstream.next()];
    const isTitle = ({ body }: ModelCall) => JSON.stringify(body).includes("Give this conversation a title");
    const [titleCall, turnCall] = [calls.find(isTitle), calls.find((call) => !isTitle(call))];
    if (!titleCall || !turnCall) throw new Error("the title was not requested in parallel with the turn");
    expect([titleCall.body.model, turnCall.body.model]).toEqual(["small", "test-model"]);
    finish(titleCall, "A title");
    await until(async () => (await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`)).title === "A title");
    finish(turnCall, "an answer", 600);
    expect(await answerNext("said hello")).toBe("test-model");
    await waitForTitles();
    await sendMessage(world, chat.id, "second");
    expect([await answerNext("SUMMARY"), await answerNext("another")]).toEqual(["small", "test-model"]);
    expect(await answerNext("said more")).toBe("test-model");
    await waitForTitles();
    await world.owner.patch(`/api/v2/chats/model-configs/${small.id}`, { enabled: false });
    const untitledChat = await createChat(world, "a message that also has more than six words");
    using follower = await Follower.open(world.owner, untitledChat.id);
    expect(await answerNext("an answer")).toBe("test-model");
    const labelCall = await world.upstream.next();
    expect(JSON.stringify(labelCall.body)).toContain("two to five words");
    finish(labelCall, "said hello");
    await follower.until(({ status }) => status === "waiting");
  },
);
