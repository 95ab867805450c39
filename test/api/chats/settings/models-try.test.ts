// Trying a model when it is configured: it gets a greeting to answer, and an error has the reason.
import { expect, test } from "bun:test";
import type { TriedModel } from "#schema/chats/model-config.ts";
import type { ModelProvider, TriedProvider } from "#schema/chats/model-provider.ts";
import type { HealthReport } from "#schema/deployment/health.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";

test("[MO-60] testing a model returns its text, time and tokens, and the cost is charged to the caller", async () => {
  await using world = await openModelWorld();
  const { model } = await addModel(world);
  world.upstream.isPolite = false;
  const requested = world.owner.post<TriedModel>(`/api/v2/chats/model-configs/${model.id}/try`);
  const call = await world.upstream.next();
  expect(JSON.stringify(call.body)).toContain("Say hello");
  call.say({ text: "Hello " }, { text: "there." }, { finish: "stop", usage: { input: 9, output: 3 } }).end();
  const answer = await requested;
  expect(answer).toMatchObject({ works: true, answer: "Hello there.", output_tokens: 3 });
  expect(answer.first_ms).toBeLessThanOrEqual(answer.total_ms);
});

test("[MO-60] a model that refuses its key is reported without the provider's text, which may repeat the key; a disabled one is a conflict", async () => {
  await using world = await openModelWorld();
  const { model } = await addModel(world);
  world.upstream.isPolite = false;
  const requested = world.owner.post<TriedModel>(`/api/v2/chats/model-configs/${model.id}/try`);
  (await world.upstream.next()).answer(401, { error: { message: "wrong key sk-123" } });
  const result = await requested;
  expect(result).toMatchObject({
    works: false,
    answer: "",
    problem: "The model provider My openai-compat refused the credentials.",
  });
  await world.owner.patch(`/api/v2/chats/model-configs/${model.id}`, { enabled: false });
  expect((await world.owner.fetch("POST", `/api/v2/chats/model-configs/${model.id}/try`)).status).toBe(409);
});

test("[MO-65] a provider is tested before it is saved: its model list is returned, a wrong key and a silent address are reported, and a stored key is never sent elsewhere", async () => {
  await using world = await openModelWorld();
  const keys: string[] = [];
  const serve = () =>
    Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: (request) => {
        keys.push(request.headers.get("authorization") ?? "");
        if (!new URL(request.url).pathname.endsWith("/models")) return new Response("", { status: 404 });
        return request.headers.get("authorization") === "Bearer right"
          ? Response.json({ data: [{ id: "b-model" }, { id: "a-model" }] })
          : new Response("", { status: 401 });
      },
    });
  using own = { server: serve(), [Symbol.dispose]: () => own.server.stop(true) };
  using other = { server: serve(), [Symbol.dispose]: () => other.server.stop(true) };
  const at = ({ server }: typeof own) => `http://127.0.0.1:${server.port}/v1`;
  const tryProvider = (body: object) => world.owner.post<TriedProvider>("/api/v2/chats/providers/try", body);
  const compat = { provider: "openai-compat", base_url: at(own) };
  expect(await tryProvider({ ...compat, api_key: "right" })).toEqual({ works: true, models: ["a-model", "b-model"] });
  expect(await tryProvider({ ...compat, api_key: "wrong" })).toMatchObject({
    works: false,
    problem: "The provider rejected the key.",
  });
  expect(await tryProvider({ ...compat, base_url: "http://127.0.0.1:1/v1" })).toMatchObject({ works: false });
  // The model does not answer.
  expect(await tryProvider({ ...compat, api_key: "right", model: "a-model" })).toMatchObject({ works: false });
  const { id } = await world.owner.post<ModelProvider>("/api/v2/chats/providers", { ...compat, api_key: "right" });
  expect(await tryProvider({ provider_id: id })).toMatchObject({ works: true });
  keys.length = 0;
  expect(await tryProvider({ provider_id: id, base_url: at(other) })).toMatchObject({ works: false });
  expect(keys).toEqual([""]);
  expect((await world.owner.fetch("POST", "/api/v2/chats/providers/try", {})).status).toBe(400);
  expect((await world.owner.get<ModelProvider[]>("/api/v2/chats/providers")).map(({ base_url }) => base_url)).toEqual([
    at(own),
  ]);
});

test("[MO-65] a model that does not answer never becomes the default: as the first one, when added as the default, by a change, or as a replacement", async () => {
  await using world = await openModelWorld();
  const { owner, upstream } = world;
  upstream.isPolite = false;
  const MODELS = "/api/v2/chats/model-configs";
  const rejectNext = async () => (await upstream.next()).answer(401, { error: { message: "no" } });
  const answerNext = async () => {
    const usage = { input: 1, output: 1 };
    (await upstream.next()).say({ text: "Hello." }, { finish: "stop", usage }).end();
  };
  type Model = { readonly id: string; readonly model: string; readonly is_default: boolean };
  const list = () => owner.get<Model[]>(MODELS);
  const defaults = async () => (await list()).filter(({ is_default }) => is_default).map(({ model }) => model);
  const provider = await owner.post<ModelProvider>("/api/v2/chats/providers", {
    provider: "openai-compat",
    base_url: `${upstream.url}/v1`,
  });
  const add = (model: string, more: object = {}) => ({ provider_id: provider.id, model, ...more });

  // Requested as the default: nothing is added.
  const refused = owner.fetch("POST", MODELS, add("dead", { is_default: true }));
  await rejectNext();
  expect((await refused).status).toBe(412);
  expect(await list()).toEqual([]);
  expect((await owner.fetch("POST", MODELS, add("off", { is_default: true, enabled: false }))).status).toBe(409);

  // The first one is added but is not the default; the first one that answers is.
  const first = owner.post<Model>(MODELS, add("dead"));
  await rejectNext();
  expect((await first).is_default).toBe(false);
  expect(await owner.post<Model>(MODELS, add("off", { enabled: false }))).toMatchObject({ is_default: false });
  const second = owner.post<Model>(MODELS, add("alive"));
  await answerNext();
  expect((await second).is_default).toBe(true);
  // Another model is not called.
  const other = await owner.post<Model>(MODELS, add("other"));
  expect([other.is_default, await defaults()]).toEqual([false, ["alive"]]);

  const path = `${MODELS}/${other.id}`;
  const unchanged = owner.fetch("PATCH", path, { is_default: true });
  await rejectNext();
  expect((await unchanged).status).toBe(412);
  expect(await defaults()).toEqual(["alive"]);
  const becomingDefault = owner.patch(path, { is_default: true });
  await answerNext();
  await becomingDefault;
  expect(await defaults()).toEqual(["other"]);

  // A model that replaces the default is also tried: the oldest one that answers becomes the default.
  const answerEach = async (count: number, living: string) => {
    for (let at = 0; at < count; at++) {
      const call = await upstream.next();
      const { model } = call.body as { readonly model: string };
      if (model !== living) call.answer(401, { error: { message: "no" } });
      else call.say({ text: "Hello." }, { finish: "stop", usage: { input: 1, output: 1 } }).end();
    }
  };
  const removed = owner.delete(path);
  await answerEach(2, "alive");
  await removed;
  expect(await defaults()).toEqual(["alive"]);
  const switched = owner.patch<Model>(`${MODELS}/${(await second).id}`, { enabled: false });
  await answerEach(1, "nothing");
  // If none answers, a disabled model stays the default until it is enabled again.
  expect([(await switched).is_default, await defaults()]).toEqual([true, ["alive"]]);
  const last = owner.delete(`${MODELS}/${(await second).id}`);
  await answerEach(1, "nothing");
  await last;
  expect(await defaults()).toEqual([]);
  const { findings } = await owner.get<HealthReport>("/api/v2/debug/health?force=true");
  expect(findings.find(({ name }) => name === "models")?.detail).toContain("There is no default model");
});
