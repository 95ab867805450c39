// Requests that administration pages make the server send: to model servers on this machine, MCP servers, the hook consumer, and external accounts.
import { expect, test } from "bun:test";
import type { ExternalAccounts } from "#schema/administration/external-accounts.ts";
import type { LocalModelServers } from "#schema/administration/local-models.ts";
import type { HookConsumer, TriedHookConsumer } from "#schema/chats/hook-dispatch.ts";
import type { McpServerConfig, TriedMcpServer } from "#schema/chats/mcp-server.ts";
import { Client } from "#src/client.ts";
import { Consumer, SECRET } from "#test/hooks/world.ts";
import { startMcpHost } from "#test/mcp/support.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";
import { FakeProvider } from "../external-auth/provider.ts";
import { LOCAL, link, startWith } from "../external-auth/world.ts";
import { startOllama, startVllm } from "./model-servers.ts";

const signInOwner = (server: TestServer): Promise<Client> => new Client(server.url).signIn(ADMIN.email, ADMIN.password);

test("[AD-5] finds Ollama and vLLM on this machine with their models, and ignores servers that do not answer or are something else", async () => {
  using ollama = startOllama();
  using vllm = startVllm();
  using unrelated = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response("<h1>Somebody's page</h1>"),
  });
  const response = Promise.withResolvers<void>();
  using hanging = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => response.promise.then(() => new Response()),
  });
  const urls = [ollama, vllm, unrelated, hanging].map(({ port }) => `http://127.0.0.1:${port}`);
  await using server = await startTestServer({ env: { SLIPWAY_LOCAL_MODEL_SERVERS: urls.join(",") } });
  const owner = await signInOwner(server);
  const getLocalServers = () => owner.get<LocalModelServers>("/api/v2/chats/providers/local");
  const { servers } = await getLocalServers();
  expect(servers.map(({ kind, version, base_url }) => [kind, version, base_url])).toEqual([
    ["ollama", "0.13.1", `${urls[0]}/v1`],
    ["vllm", "0.11.0", `${urls[1]}/v1`],
  ]);
  expect(servers[0]?.models).toEqual([
    { model: "qwen3-coder:30b", size_bytes: 19_000_000_000, parameters: "30.5B", context_limit: 262_144, tools: true },
    { model: "gemma3:12b", size_bytes: 8_100_000_000, parameters: "12.2B", context_limit: 131_072, tools: false },
  ]);
  expect(servers[1]?.models).toMatchObject([{ model: "mistral-small", context_limit: 32_768, tools: null }]);

  const provider = { provider: "openai-compat", display_name: "Ollama", base_url: `${urls[0]}/v1`, enabled: true };
  const created = await owner.post<{ id: string }>("/api/v2/chats/providers", provider);
  expect((await getLocalServers()).servers.map(({ provider_id }) => provider_id)).toEqual([created.id, null]);
  response.resolve();
});

test("[AD-6] testing an MCP server lists its tools, marks the ones that chats get, or says why it fails", async () => {
  await using host = startMcpHost();
  await using server = await startTestServer({ env: LOCAL });
  const owner = await signInOwner(server);
  const base = "/api/v2/organizations/default/mcp-servers";
  const entry = { slug: "sums", url: `${host.url}/mcp`, tool_deny_list: ["fail"] };
  const { id } = await owner.post<McpServerConfig>(base, entry);
  const success = await owner.post<TriedMcpServer>(`${base}/${id}/try`);
  expect(success.works).toBe(true);
  const findTool = (name: string) => success.tools.find((tool) => tool.name === name);
  expect(findTool("add")).toMatchObject({ description: "The tool add.", offered: true });
  expect(findTool("fail")?.offered).toBe(false);
  host.refuse = () => new Response("no", { status: 500 });
  const failure = await owner.post<TriedMcpServer>(`${base}/${id}/try`);
  expect([failure.works, failure.tools, failure.problem]).toEqual([false, [], "it answered 500: no"]);
  const getProblem = async (slug: string, url: string) => {
    const created = await owner.post<McpServerConfig>(base, { slug, url });
    return (await owner.post<TriedMcpServer>(`${base}/${created.id}/try`)).problem;
  };
  expect(await getProblem("other", `${server.url.origin}/api/v2/none`)).toBe("it answered 404: Route not found.");
  expect(await getProblem("dead", "http://127.0.0.1:1/mcp")).toBe(
    "127.0.0.1:1 cannot be reached (nothing listens there).",
  );
  host.refuse = () => new Response("", { status: 502 });
  expect(await getProblem("silent", `${host.url}/mcp`)).toBe("it answered 502");
});

testNeeding(
  [needs.python3],
  "[AD-7] shows the hook consumer without its secret; testing it reports whether it is reachable",
  async () => {
    await using consumer = await Consumer.start();
    const env = consumer.env({ SLIPWAY_HOOK_URL: `${consumer.url}?key=hush` });
    await using server = await startTestServer({ env });
    const owner = await signInOwner(server);
    const consumerText = await (await owner.fetch("GET", "/api/v2/hooks/consumer")).text();
    expect(consumerText).not.toContain(SECRET);
    expect(consumerText).not.toContain("hush");
    expect(JSON.parse(consumerText) as HookConsumer).toMatchObject({
      configured: true,
      mode: "enforce",
      url: consumer.url,
    });
    expect(await owner.post<TriedHookConsumer>("/api/v2/hooks/consumer/try")).toMatchObject({ works: true });
    expect(await consumer.listReceived("stop")).toHaveLength(1);
    await consumer.kill();
    const failure = await owner.post<TriedHookConsumer>("/api/v2/hooks/consumer/try");
    expect([failure.works, failure.problem?.startsWith("connection_failed")]).toEqual([false, true]);
  },
);

test("[AD-8] the owner sees who has linked which accounts, and no token", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([provider.setting("hub")]);
  const owner = await signInOwner(server);
  await link(owner, provider, "hub");
  const text = await (await owner.fetch("GET", "/api/v2/deployment/external-auth")).text();
  const { providers, links } = JSON.parse(text) as ExternalAccounts;
  expect(providers).toMatchObject([{ id: "hub", link_count: 1 }]);
  expect(providers[0]?.callback_url).toBe(new URL("/external-auth/hub/callback", server.url).href);
  expect(links).toMatchObject([{ provider_id: "hub", username: ADMIN.username, authenticated: true }]);
  // The fake provider's tokens begin with these words.
  expect(text).not.toMatch(/access-|refresh-|sealed/);
});
