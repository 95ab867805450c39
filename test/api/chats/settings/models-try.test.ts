// Trying a model when it is set up: it says hello, or the words say why not.
import { expect, test } from "bun:test";
import type { TriedModel } from "#schema/chats/model-config.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";

test("[MO-60] a model that answers is told with its words, its time and its tokens, and what it cost is the asker's", async () => {
  await using world = await openModelWorld();
  const { model } = await addModel(world);
  const asked = world.owner.post<TriedModel>(`/api/v2/chats/model-configs/${model.id}/try`);
  const call = await world.upstream.next();
  expect(JSON.stringify(call.body)).toContain("Say hello");
  call.say({ text: "Hello " }, { text: "there." }, { finish: "stop", usage: { input: 9, output: 3 } }).end();
  const answer = await asked;
  expect(answer).toMatchObject({ works: true, answer: "Hello there.", output_tokens: 3 });
  expect(answer.first_ms).toBeLessThanOrEqual(answer.total_ms);
});

test("[MO-60] a model that refuses its key is told in words, without the provider's text, which may repeat the key; a disabled one is a conflict", async () => {
  await using world = await openModelWorld();
  const { model } = await addModel(world);
  const asked = world.owner.post<TriedModel>(`/api/v2/chats/model-configs/${model.id}/try`);
  (await world.upstream.next()).answer(401, { error: { message: "wrong key sk-123" } });
  const told = await asked;
  expect(told).toMatchObject({
    works: false,
    answer: "",
    problem: "The model provider My openai-compat refused the credentials.",
  });
  await world.owner.patch(`/api/v2/chats/model-configs/${model.id}`, { enabled: false });
  expect((await world.owner.fetch("POST", `/api/v2/chats/model-configs/${model.id}/try`)).status).toBe(409);
});
