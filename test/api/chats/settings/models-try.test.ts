// Tests of models and providers when they are configured: the model answers a greeting, and an error has the reason.
import { expect, test } from "bun:test";
import type { TriedModel } from "#schema/chats/model-config.ts";
import type { ModelProvider, TriedProvider } from "#schema/chats/model-provider.ts";
import type { HealthReport } from "#schema/deployment/health.ts";
import type { ModelCall } from "#test/support/models/model-server.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";

test("[MO-60] testing a model returns its text, time and tokens, and the cost is charged to the caller", async () => {
  await using world = await openModelWorld();
  const { model } = await addModel(world);
  world.upstream.answersGreeting = false;
  const pendingResult = world.owner.post<TriedModel>(`/api/v2/chats/model-configs/${model.id}/try`);
  const call = await world.upstream.next();
  expect(JSON.stringify(call.body)).toContain("Say hello");
  call.say({ text: "Hello " }, { text: "there." }, { finish: "stop", usage: { input: 9, output: 3 } }).end();
  const answer = await pendingResult;
  expect(answer).toMatchObject({ works: true, answer: "Hello there.", output_tokens: 3 });
  expect(answer.first_ms).toBeLessThanOrEqual(answer.total_ms);
});

test("[MO-60] reports a refused key without the provider's text, which may repeat the key; a disabled model gets 409", async () => {
  await using world = await openModelWorld();
  const { model } = await addModel(world);
  world.upstream.answersGreeting = false;
  const pendingResult = world.owner.post<TriedModel>(`/api/v2/chats/model-configs/${model.id}/try`);
  (await world.upstream.next()).answer(401, { error: { message: "wrong key sk-123" } });
  const result = await pendingResult;
  expect(result).toMatchObject({
    works: false,
    answer: "",
    problem: "The model provider My openai-compat refused the credentials.",
  });
  await world.owner.patch(`/api/v2/chats/model-configs/${model.id}`, { enabled: false });
  expect((await world.owner.fetch("POST", `/api/v2/chats/model-configs/${model.id}/try`)).status).toBe(409);
});

test("[MO-65] tests a provider before it is saved, returns its models, and never sends a stored key elsewhere", async () => {
  await using world = await openModelWorld();
  const receivedKeys: string[] = [];
  const startProvider = () =>
    Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: (request) => {
        receivedKeys.push(request.headers.get("authorization") ?? "");
        if (!new URL(request.url).pathname.endsWith("/models")) return new Response("", { status: 404 });
        return request.headers.get("authorization") === "Bearer right"
          ? Response.json({ data: [{ id: "b-model" }, { id: "a-model" }] })
          : new Response("", { status: 401 });
      },
    });
  using own = { server: startProvider(), [Symbol.dispose]: () => own.server.stop(true) };
  using other = { server: startProvider(), [Symbol.dispose]: () => other.server.stop(true) };
  const toUrl = ({ server }: typeof own) => `http://127.0.0.1:${server.port}/v1`;
  const tryProvider = (body: object) => world.owner.post<TriedProvider>("/api/v2/chats/providers/try", body);
  const settings = { provider: "openai-compat", base_url: toUrl(own) };
  expect(await tryProvider({ ...settings, api_key: "right" })).toEqual({ works: true, models: ["a-model", "b-model"] });
  expect(await tryProvider({ ...settings, api_key: "wrong" })).toMatchObject({
    works: false,
    problem: "The provider rejected the key.",
  });
  expect(await tryProvider({ ...settings, base_url: "http://127.0.0.1:1/v1" })).toMatchObject({ works: false });
  // The model does not answer.
  expect(await tryProvider({ ...settings, api_key: "right", model: "a-model" })).toMatchObject({ works: false });
  const { id } = await world.owner.post<ModelProvider>("/api/v2/chats/providers", { ...settings, api_key: "right" });
  expect(await tryProvider({ provider_id: id })).toMatchObject({ works: true });
  receivedKeys.length = 0;
  expect(await tryProvider({ provider_id: id, base_url: toUrl(other) })).toMatchObject({ works: false });
  expect(receivedKeys).toEqual([""]);
  expect((await world.owner.fetch("POST", "/api/v2/chats/providers/try", {})).status).toBe(400);
  const providers = await world.owner.get<ModelProvider[]>("/api/v2/chats/providers");
  expect(providers.map(({ base_url }) => base_url)).toEqual([toUrl(own)]);
});

test("[MO-65] a model that does not answer never becomes the default, whether it is added, changed or a replacement", async () => {
  await using world = await openModelWorld();
  const { owner, upstream } = world;
  upstream.answersGreeting = false;
  const MODELS = "/api/v2/chats/model-configs";
  const rejectNext = async () => (await upstream.next()).answer(401, { error: { message: "no" } });
  const sayHello = (call: ModelCall) =>
    call.say({ text: "Hello." }, { finish: "stop", usage: { input: 1, output: 1 } }).end();
  const answerNext = async () => sayHello(await upstream.next());
  type Model = { readonly id: string; readonly model: string; readonly is_default: boolean };
  const listModels = () => owner.get<Model[]>(MODELS);
  const listDefaults = async () =>
    (await listModels()).filter(({ is_default }) => is_default).map(({ model }) => model);
  const provider = await owner.post<ModelProvider>("/api/v2/chats/providers", {
    provider: "openai-compat",
    base_url: `${upstream.url}/v1`,
  });
  const toBody = (model: string, fields: object = {}) => ({ provider_id: provider.id, model, ...fields });

  // Requested as the default: nothing is added.
  const refusedResponse = owner.fetch("POST", MODELS, toBody("dead", { is_default: true }));
  await rejectNext();
  expect((await refusedResponse).status).toBe(412);
  expect(await listModels()).toEqual([]);
  expect((await owner.fetch("POST", MODELS, toBody("off", { is_default: true, enabled: false }))).status).toBe(409);

  // The first model is added without being the default. The first model that answers becomes the default.
  const adding = owner.post<Model>(MODELS, toBody("dead"));
  await rejectNext();
  expect((await adding).is_default).toBe(false);
  expect(await owner.post<Model>(MODELS, toBody("off", { enabled: false }))).toMatchObject({ is_default: false });
  const addingAlive = owner.post<Model>(MODELS, toBody("alive"));
  await answerNext();
  expect((await addingAlive).is_default).toBe(true);
  // Once there is a default, new models are not called.
  const otherModel = await owner.post<Model>(MODELS, toBody("other"));
  expect([otherModel.is_default, await listDefaults()]).toEqual([false, ["alive"]]);

  const path = `${MODELS}/${otherModel.id}`;
  const failedChange = owner.fetch("PATCH", path, { is_default: true });
  await rejectNext();
  expect((await failedChange).status).toBe(412);
  expect(await listDefaults()).toEqual(["alive"]);
  const change = owner.patch(path, { is_default: true });
  await answerNext();
  await change;
  expect(await listDefaults()).toEqual(["other"]);

  // Candidates to replace the default are also called: the oldest one that answers becomes the default.
  const answerCandidates = async (count: number, workingModel: string) => {
    for (let candidate = 0; candidate < count; candidate++) {
      const call = await upstream.next();
      const { model } = call.body as { readonly model: string };
      if (model !== workingModel) call.answer(401, { error: { message: "no" } });
      else sayHello(call);
    }
  };
  const removal = owner.delete(path);
  await answerCandidates(2, "alive");
  await removal;
  expect(await listDefaults()).toEqual(["alive"]);
  const disabling = owner.patch<Model>(`${MODELS}/${(await addingAlive).id}`, { enabled: false });
  await answerCandidates(1, "nothing");
  // If no model answers, the disabled one stays the default until it is enabled again.
  expect([(await disabling).is_default, await listDefaults()]).toEqual([true, ["alive"]]);
  const lastRemoval = owner.delete(`${MODELS}/${(await addingAlive).id}`);
  await answerCandidates(1, "nothing");
  await lastRemoval;
  expect(await listDefaults()).toEqual([]);
  const { findings } = await owner.get<HealthReport>("/api/v2/debug/health?force=true");
  expect(findings.find(({ name }) => name === "models")?.detail).toContain("There is no default model");
});
