// Configuration of models: permissions, invalid values, the default model, and keys that are never returned.
import { describe, expect, test } from "bun:test";
import type { AvailableModels, ModelConfig } from "#schema/chats/model-config.ts";
import type { ModelProvider } from "#schema/chats/model-provider.ts";
import { Client } from "#src/client.ts";
import { createChat, Follower } from "#test/support/chats.ts";
import { addModel, MODEL_KEY, openModelWorld } from "#test/support/models/model-world.ts";
import { tempDirectory } from "#test/support/server.ts";
import { openStoredData, readStoredTexts } from "#test/support/stored.ts";

const PROVIDERS = "/api/v2/chats/providers";
const MODELS = "/api/v2/chats/model-configs";
const UNKNOWN_ID = "00000000-0000-4000-8000-000000000001";
type ModelWorld = Awaited<ReturnType<typeof openModelWorld>>;

const createMember = async ({ owner, server, organization_id }: ModelWorld): Promise<Client> => {
  const body = { email: "m@example.com", username: "mia", password: "correct-horse-battery" };
  await owner.post("/api/v2/users", { ...body, organization_ids: [organization_id] });
  return new Client(server.url).signIn(body.email, body.password);
};

const fetchStatus = async (client: Client, method: string, path: string, body?: unknown): Promise<number> =>
  (await client.fetch(method, path, body)).status;

const listDefaults = async ({ owner }: ModelWorld): Promise<string[]> =>
  (await owner.get<ModelConfig[]>(MODELS)).filter(({ is_default }) => is_default).map(({ model }) => model);

describe("providers", () => {
  test("[MO-1] can be created, listed, changed and deleted; a kind can have several with different names", async () => {
    await using world = await openModelWorld();
    const { owner } = world;
    const created = await owner.post<ModelProvider>(PROVIDERS, { provider: "openai", api_key: MODEL_KEY });
    expect(created).toMatchObject({ provider: "openai", display_name: "openai", base_url: "", enabled: true });
    expect(created.has_api_key).toBe(true);
    expect(await fetchStatus(owner, "POST", PROVIDERS, { provider: "openai", display_name: "OpenAI" })).toBe(409);
    const second = await owner.post<ModelProvider>(PROVIDERS, { provider: "openai", display_name: "Second" });
    expect(second.has_api_key).toBe(false);
    expect(await fetchStatus(owner, "PATCH", `${PROVIDERS}/${second.id}`, { display_name: "openai" })).toBe(409);
    const changed = await owner.patch<ModelProvider>(`${PROVIDERS}/${second.id}`, {
      enabled: false,
      display_name: "B",
    });
    expect(changed).toMatchObject({ enabled: false, display_name: "B" });
    expect((await owner.get<ModelProvider[]>(PROVIDERS)).map(({ id }) => id)).toEqual([created.id, second.id]);
    expect(await fetchStatus(owner, "DELETE", `${PROVIDERS}/${created.id}`)).toBe(204);
    expect(await fetchStatus(owner, "DELETE", `${PROVIDERS}/${created.id}`)).toBe(404);
    expect((await owner.get<ModelProvider[]>(PROVIDERS)).map(({ id }) => id)).toEqual([second.id]);
    expect(await fetchStatus(owner, "POST", PROVIDERS, { provider: "openai" })).toBe(201);
  });

  test.each([
    ["an unknown kind", { provider: "somebody" }, "provider"],
    ["a server without its address", { provider: "openai-compat" }, "base_url"],
    ["another protocol", { provider: "openai", base_url: "ftp://x.example" }, "base_url"],
    ["an address without its host", { provider: "openai", base_url: "models" }, "base_url"],
    ["credentials in the address", { provider: "openai", base_url: "http://me:secret@x.example" }, "base_url"],
    ["a query in the address", { provider: "openai", base_url: "http://x.example/?key=1" }, "base_url"],
    ["a key with a space", { provider: "openai", api_key: " key" }, "api_key"],
    ["a key of two lines", { provider: "openai", api_key: "a\nb" }, "api_key"],
    ["a key of more than 10 KB", { provider: "openai", api_key: "k".repeat(10_241) }, "api_key"],
    ["an empty name", { provider: "openai", display_name: "  " }, "display_name"],
  ])("[MO-2] refuses %s", async (_, body, field) => {
    await using world = await openModelWorld();
    const response = await world.owner.fetch("POST", PROVIDERS, body);
    const text = await response.text();
    expect(response.status).toBe(400);
    expect(text).toContain(`"field":"${field}"`);
    if ("api_key" in body) expect(text).not.toContain(body.api_key.slice(0, 20));
    expect(await world.owner.get<ModelProvider[]>(PROVIDERS)).toEqual([]);
  });

  test("[MO-3] only the owner manages providers and models; members see the usable ones", async () => {
    await using world = await openModelWorld();
    const { provider, model } = await addModel(world);
    const mia = await createMember(world);
    for (const [method, path, body] of [
      ["GET", PROVIDERS, undefined],
      ["POST", PROVIDERS, { provider: "openai" }],
      ["PATCH", `${PROVIDERS}/${provider.id}`, { enabled: false }],
      ["DELETE", `${PROVIDERS}/${provider.id}`, undefined],
      ["POST", MODELS, { provider_id: provider.id, model: "x" }],
      ["PATCH", `${MODELS}/${model.id}`, { enabled: false }],
      ["DELETE", `${MODELS}/${model.id}`, undefined],
    ] as const) {
      expect([method, path, await fetchStatus(mia, method, path, body)]).toEqual([method, path, 403]);
    }
    const second = await world.owner.post<ModelConfig>(MODELS, { provider: "openai-compat", model: "second" });
    expect((await mia.get<ModelConfig[]>(MODELS)).map(({ id }) => id)).toEqual([model.id, second.id]);
    await world.owner.patch(`${MODELS}/${second.id}`, { enabled: false });
    expect((await mia.get<ModelConfig[]>(MODELS)).map(({ id }) => id)).toEqual([model.id]);
    expect(await world.owner.get<ModelConfig[]>(MODELS)).toHaveLength(2);
    await world.owner.patch(`${PROVIDERS}/${provider.id}`, { enabled: false });
    expect(await mia.get<ModelConfig[]>(MODELS)).toEqual([]);
  });

  test("[MO-4] keys are stored encrypted: no file or response reveals them, and they work after a restart", async () => {
    using directory = tempDirectory();
    const providerId = await (async () => {
      await using world = await openModelWorld({ directory: directory.path });
      const { provider, model } = await addModel(world);
      const responses = [
        provider,
        model,
        await world.owner.get(PROVIDERS),
        await world.owner.get("/api/v2/chats/models"),
      ];
      expect(JSON.stringify(responses)).not.toContain(MODEL_KEY);
      return provider.id;
    })();
    for (const text of await readStoredTexts(directory.path)) expect(text.includes(MODEL_KEY)).toBe(false);
    await using stored = await openStoredData(directory.path);
    const [row] = await stored.rows("select sealed_api_key from model_providers");
    expect(row?.[0]).toStartWith("v1.");
    await using world = await openModelWorld({ directory: directory.path });
    const base_url = `${world.upstream.url}/v1`;
    await world.owner.patch(`${PROVIDERS}/${providerId}`, { base_url, api_key: `${MODEL_KEY}-2` });
    await createChat(world, "hello");
    const call = await world.upstream.next();
    expect(call.headers.get("authorization")).toBe(`Bearer ${MODEL_KEY}-2`);
  });

  test("[MO-5] a stored key is never sent to another address; a new address requires a new key", async () => {
    await using world = await openModelWorld();
    const { provider } = await addModel(world);
    const path = `${PROVIDERS}/${provider.id}`;
    expect(await fetchStatus(world.owner, "PATCH", path, { base_url: "https://elsewhere.example/v1" })).toBe(400);
    expect(await fetchStatus(world.owner, "PATCH", path, { base_url: `${world.upstream.url}/v2` })).toBe(200);
    const update = { base_url: "https://elsewhere.example/v1", api_key: "another" };
    expect(await fetchStatus(world.owner, "PATCH", path, update)).toBe(200);
  });
});

describe("models", () => {
  test("[MO-6] there is one default: the first model that answers, the one that is chosen, or a replacement", async () => {
    await using world = await openModelWorld();
    const { owner } = world;
    await owner.post(PROVIDERS, { provider: "openai-compat", base_url: `${world.upstream.url}/v1` });
    const add = (model: string, fields = {}) =>
      owner.post<ModelConfig>(MODELS, { provider: "openai-compat", model, ...fields });
    const first = await add("first");
    expect(first).toMatchObject({ is_default: true, context_limit: 128_000, display_name: "first", enabled: true });
    await add("off", { enabled: false });
    await add("second");
    expect(await listDefaults(world)).toEqual(["first"]);
    await add("third", { is_default: true });
    expect(await listDefaults(world)).toEqual(["third"]);
    await owner.patch(`${MODELS}/${first.id}`, { is_default: true });
    expect(await listDefaults(world)).toEqual(["first"]);
    expect(await fetchStatus(owner, "PATCH", `${MODELS}/${first.id}`, { is_default: false })).toBe(400);
    await owner.delete(`${MODELS}/${first.id}`);
    expect(await listDefaults(world)).toEqual(["second"]);
    expect(await fetchStatus(owner, "DELETE", `${MODELS}/${first.id}`)).toBe(404);
    await Promise.all(["a", "b", "c"].map((model) => add(model, { is_default: true })));
    expect(await listDefaults(world)).toHaveLength(1);
  });

  test("[MO-7] a model needs an enabled provider (412), a unique name there (409) and valid numbers (400)", async () => {
    await using world = await openModelWorld();
    const { owner } = world;
    expect(await fetchStatus(owner, "POST", MODELS, { provider: "openai", model: "m" })).toBe(412);
    expect(await fetchStatus(owner, "POST", MODELS, { provider_id: UNKNOWN_ID, model: "m" })).toBe(412);
    const { provider } = await addModel(world);
    const body = { provider_id: provider.id, model: "m" };
    expect(await fetchStatus(owner, "POST", MODELS, { ...body, model: "test-model" })).toBe(409);
    for (const invalid of [
      { model: " " },
      { context_limit: 0 },
      { compression_threshold: 101 },
      { model_config: { temperature: 3 } },
      { model_config: { max_output_tokens: 0 } },
      { model_config: { reasoning: { max: "most" } } },
    ]) {
      expect([invalid, await fetchStatus(owner, "POST", MODELS, { ...body, ...invalid })]).toEqual([invalid, 400]);
    }
    const second = { provider: "openai-compat", display_name: "Second", base_url: world.upstream.url };
    await owner.post(PROVIDERS, second);
    expect(await fetchStatus(owner, "POST", MODELS, { provider: "openai-compat", model: "m" })).toBe(400);
    await owner.patch(`${PROVIDERS}/${provider.id}`, { enabled: false });
    expect(await fetchStatus(owner, "POST", MODELS, body)).toBe(412);
    expect(await owner.get<ModelConfig[]>(MODELS)).toHaveLength(1);
  });

  test("[MO-8] lists usable models, and others with reasons; chats cannot be created with an unusable model", async () => {
    await using world = await openModelWorld();
    const { owner } = world;
    const getAvailable = () => owner.get<AvailableModels>("/api/v2/chats/models");
    expect((await getAvailable()).providers).toMatchObject([
      { provider: "demo", available: true, models: [{ is_default: true }] },
    ]);
    await owner.post(PROVIDERS, { provider: "anthropic" });
    const keyless = await owner.post<ModelConfig>(MODELS, { provider: "anthropic", model: "a" });
    expect((await getAvailable()).providers).toMatchObject([
      { provider: "anthropic", available: false, unavailable_reason: "missing_api_key", models: [{ id: keyless.id }] },
    ]);
    const chat = { organization_id: world.organization_id, content: [{ type: "text", text: "hello" }] };
    expect(await fetchStatus(owner, "POST", "/api/v2/chats", chat)).toBe(400);
    expect(await fetchStatus(owner, "POST", "/api/v2/chats", { ...chat, model_config_id: keyless.id })).toBe(400);
    expect(await fetchStatus(owner, "POST", "/api/v2/chats", { ...chat, model_config_id: UNKNOWN_ID })).toBe(400);
    const { model } = await addModel(world);
    expect((await createChat(world, "hello")).last_model_config_id).toBe(model.id);
  });

  test("[MO-9] a fresh install answers with the demo model, and a chat started with it continues with a real one", async () => {
    await using world = await openModelWorld();
    const chat = await createChat(world, "say: hi");
    using follower = await Follower.open(world.owner, chat.id);
    await follower.until(({ status, history }) => status === "waiting" && history.length === 2);
    const { provider } = await addModel(world);
    await world.owner.post(`/api/v2/chats/${chat.id}/messages`, { content: [{ type: "text", text: "more" }] });
    (await world.upstream.next()).say({ text: "real" }, { finish: "stop" }).end();
    await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: real");
    await world.owner.delete(`${PROVIDERS}/${provider.id}`);
    await world.owner.post(`/api/v2/chats/${chat.id}/messages`, {
      content: [{ type: "text", text: "say: demo again" }],
    });
    await follower.until(({ status, history }) => status === "waiting" && history.at(-1) === "assistant: demo again");
  });
});

const PRIVATE_URLS = [
  ...["https://10.1.2.3/v1", "http://172.16.0.1/v1", "http://172.31.9.9", "http://192.168.1.1/v1", "http://100.64.0.1"],
  ...["http://[fd00::1]/v1", "https://[::ffff:10.1.2.4]/v1"],
];

test("[MO-46] refuses private base URLs on servers that others use, and metadata services on every server", async () => {
  await using sharedWorld = await openModelWorld({ env: { SLIPWAY_ACCESS_URL: "https://slipway.example" } });
  await using localWorld = await openModelWorld();
  const add = async ({ owner }: typeof sharedWorld, base_url: string) => {
    const body = { provider: "openai-compat", display_name: base_url, base_url };
    const response = await owner.fetch("POST", "/api/v2/chats/providers", body);
    return [response.status, (await response.text()).match(/"field":"([^"]*)"/)?.[1]];
  };
  for (const url of ["http://127.0.0.1:9/v1", "http://localhost:9", "http://[::1]/v1", ...PRIVATE_URLS]) {
    expect([url, ...(await add(sharedWorld, url))]).toEqual([url, 400, "base_url"]);
    expect([url, ...(await add(localWorld, url))]).toEqual([url, 201, undefined]);
  }
  for (const world of [sharedWorld, localWorld]) {
    expect(await add(world, "http://169.254.169.254/latest")).toEqual([400, "base_url"]);
    expect(await add(world, "https://models.invalid/v1")).toEqual([201, undefined]);
  }
  const allProviders = await sharedWorld.owner.get<{ id: string; base_url: string }[]>("/api/v2/chats/providers");
  const publicProviders = allProviders.filter(({ base_url }) => base_url.includes("models.invalid"));
  expect(publicProviders.map(({ base_url }) => base_url)).toEqual(["https://models.invalid/v1"]);
  const path = `/api/v2/chats/providers/${publicProviders[0]?.id}`;
  expect((await sharedWorld.owner.fetch("PATCH", path, { base_url: "http://127.0.0.1:9/v1" })).status).toBe(400);
  const rename = { base_url: publicProviders[0]?.base_url, display_name: "Kept" };
  expect((await sharedWorld.owner.fetch("PATCH", path, rename)).status).toBe(200);
});
