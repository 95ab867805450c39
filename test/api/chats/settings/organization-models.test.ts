// Models that an organization sets for the titles and compaction of its chats: when they are called, and who may choose.
import { expect } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { ModelConfig } from "#schema/chats/model-config.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { testInside } from "#test/support/inside.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

const finish = (call: ModelCall, text: string, input = 10): void =>
  call.say({ text }, { finish: "stop", usage: { input, output: 5 } }).end();

testInside("[MW-3] titles and compactions use the organization's models; a disabled one gives no title", async () => {
  await using world = await openModelWorld({ env: { SLIPWAY_CHAT_TITLES: "true" } });
  const { provider } = await addModel(world, "openai-compat", { context_limit: 1_000, compression_threshold: 50 });
  const other = await world.owner.post<ModelConfig>("/api/v2/chats/model-configs", {
    provider_id: provider.id,
    model: "small",
    context_limit: 64_000,
  });
  const path = `/api/v2/organizations/${world.organization_id}/chats/model-overrides`;
  const request = { mode: "model", model_config_id: other.id };
  const putStatus = async (context: string, body: unknown) =>
    (await world.owner.fetch("PUT", `${path}/${context}`, body)).status;
  expect([
    await putStatus("root", request),
    await putStatus("compaction", { mode: "model" }),
    await putStatus("compaction", { mode: "deployment_default" }),
    await putStatus("compaction", request),
    await putStatus("title_generation", { ...request, reasoning_effort: "low" }),
  ]).toEqual([400, 400, 400, 204, 204]);
  const { overrides } = await world.owner.get<{ overrides: unknown[] }>(path);
  expect(overrides).toEqual([
    { context: "general", mode: "chat_default" },
    { context: "explore", mode: "chat_default" },
    { context: "title_generation", ...request, reasoning_effort: "low" },
    { context: "compaction", ...request },
  ]);

  const answerNext = async (text: string, input?: number): Promise<unknown> => {
    const call = await world.upstream.next();
    finish(call, text, input);
    return call.body.model;
  };
  const awaitTitles = () => getContext(world.server).titles.whenIdle();
  const chat = await createChat(world, "a first message of more than six words");
  const both = [await world.upstream.next(), await world.upstream.next()];
  const isTitle = ({ body }: ModelCall) => JSON.stringify(body).includes("Give this conversation a title");
  const [title, turn] = [both.find(isTitle), both.find((call) => !isTitle(call))];
  if (!title || !turn) throw new Error("the title was not requested in parallel with the turn");
  expect([title.body.model, turn.body.model]).toEqual(["small", "test-model"]);
  finish(title, "A title");
  await until(async () => (await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`)).title === "A title");
  finish(turn, "an answer", 600);
  expect(await answerNext("said hello")).toBe("test-model");
  await awaitTitles();
  await sendMessage(world, chat.id, "second");
  expect([await answerNext("SUMMARY"), await answerNext("another")]).toEqual(["small", "test-model"]);
  expect(await answerNext("said more")).toBe("test-model");
  await awaitTitles();
  await world.owner.patch(`/api/v2/chats/model-configs/${other.id}`, { enabled: false });
  const untitled = await createChat(world, "a message that also has more than six words");
  using follower = await Follower.open(world.owner, untitled.id);
  expect(await answerNext("an answer")).toBe("test-model");
  const label = await world.upstream.next();
  expect(JSON.stringify(label.body)).toContain("two to five words");
  finish(label, "said hello");
  await follower.until(({ status }) => status === "waiting");
});
