// The AI gateway inside workspaces: the environment variables of programs, and how long the token in them is valid.
import { expect, test } from "bun:test";
import { loadKnownSecrets } from "#domain/chats/known-secrets.ts";
import { SecretMask } from "#src/tools/mask.ts";
import { connectAgent } from "#test/api/agents/rpc-agent.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { listGatewayCalls, openGatewayWorld, putGatewaySettings } from "#test/support/models/gateway-world.ts";
import { addModel, MODEL_KEY } from "#test/support/models/model-world.ts";
import { getContext } from "#test/support/seed.ts";
import { readStoredTexts } from "#test/support/stored.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, seedTemplate } from "#test/support/workspaces.ts";

const TOKEN = "6a1c9a3e-2d7f-4a70-9d6a-3c8f0c1f0e11";
const MANIFEST = {
  ...ECHO,
  resources: [
    {
      name: "main",
      agents: [
        {
          name: "dev",
          os: "linux" as const,
          arch: "amd64" as const,
          token: TOKEN,
          env: { OPENAI_BASE_URL: "https://own.example/v1" },
        },
      ],
    },
  ],
};

const openWorkspace = async () => {
  const world = await openGatewayWorld();
  await addModel(world, "anthropic");
  const { template_id } = await seedTemplate(world.server, MANIFEST);
  const { id } = await createWorkspace(world.owner, template_id);
  const workspace = await awaitBuild(world.owner, id);
  const readEnvironment = async (): Promise<Record<string, string>> => {
    await using connected = await connectAgent(world.server, TOKEN);
    return (await connected.agent.getManifest({})).environmentVariables;
  };
  return Object.assign(world, { workspace, template_id, readEnvironment });
};

const callModel = (base: string | undefined, token: string | undefined) =>
  fetch(`${base}/v1/messages`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ model: "test-model", max_tokens: 5, messages: [{ role: "user", content: "hello" }] }),
  });

testInProcess(
  "[GW-7] programs in a workspace get addresses and a working token, and keep the template's variables",
  async () => {
    await using world = await openWorkspace();
    const environment = await world.readEnvironment();
    const token = environment.ANTHROPIC_AUTH_TOKEN ?? "";
    expect(token).toStartWith("slipway-ai.");
    expect(environment).toEqual({
      ANTHROPIC_BASE_URL: `${world.base}/anthropic`,
      ANTHROPIC_AUTH_TOKEN: token,
      GOOGLE_GEMINI_BASE_URL: `${world.base}/google`,
      GEMINI_API_KEY: token,
      // Without a token, because the template's own address must not receive it.
      OPENAI_BASE_URL: "https://own.example/v1",
    });
    const pendingResponse = callModel(environment.ANTHROPIC_BASE_URL, environment.ANTHROPIC_AUTH_TOKEN);
    (await world.upstream.next()).answer(200, { usage: { input_tokens: 1, output_tokens: 2 } });
    expect((await pendingResponse).status).toBe(200);
    expect(await listGatewayCalls(world.owner)).toMatchObject([
      { workspace_id: world.workspace.id, workspace_name: "dev" },
    ]);
    expect(await listGatewayCalls(world.owner, `?workspace_id=${world.workspace.id}`)).toHaveLength(1);
  },
);

testInProcess("[GW-7] the token is revoked with the build, is never stored, and is hidden in chats", async () => {
  await using world = await openWorkspace();
  const { ANTHROPIC_BASE_URL: base, ANTHROPIC_AUTH_TOKEN: token = "" } = await world.readEnvironment();
  expect(token.length).toBeGreaterThan(60);
  const storedTexts = await readStoredTexts(getContext(world.server).config.data_dir);
  expect(storedTexts.some((text) => text.includes(token.slice(-36)))).toBe(false);
  const scope = { chat_id: "", owner_id: world.workspace.owner_id, workspace_id: world.workspace.id };
  const mask = new SecretMask(await loadKnownSecrets(getContext(world.server), scope));
  expect(mask.text(`ANTHROPIC_AUTH_TOKEN=${token}`)).toBe("ANTHROPIC_AUTH_TOKEN=[hidden]");
  const alteredToken = `${token.slice(0, -1)}${token.endsWith("0") ? "1" : "0"}`;
  expect((await callModel(base, alteredToken)).status).toBe(401);
  await createBuild(world.owner, world.workspace.id, "stop");
  await awaitBuild(world.owner, world.workspace.id);
  const refused = await callModel(base, token);
  expect([refused.status, await refused.json()]).toMatchObject([
    401,
    { error: { message: expect.stringContaining("Restart") } },
  ]);
  expect(world.upstream.connections).toBe(0);
});

testInProcess("[GW-13] a call in progress ends when its workspace stops", async () => {
  await using world = await openWorkspace();
  const { ANTHROPIC_BASE_URL: base, ANTHROPIC_AUTH_TOKEN: token } = await world.readEnvironment();
  const pendingResponse = callModel(base, token);
  await world.upstream.next();
  await createBuild(world.owner, world.workspace.id, "stop");
  expect((await pendingResponse).status).toBe(401);
  await awaitBuild(world.owner, world.workspace.id);
});

testInProcess("[GW-16] a workspace's token is valid while its owner is a member of its organization", async () => {
  await using world = await openWorkspace();
  const { ANTHROPIC_BASE_URL: base, ANTHROPIC_AUTH_TOKEN: token } = await world.readEnvironment();
  await world.owner.post("/api/v2/organizations", { name: "other" });
  await world.owner.post("/api/v2/organizations/other/members/me");
  const pendingResponse = callModel(base, token);
  await world.upstream.next();
  await world.owner.delete("/api/v2/organizations/default/members/me");
  expect((await pendingResponse).status).toBe(401);
  expect((await callModel(base, token)).status).toBe(403);
});

testInProcess(
  "[GW-3] [GW-7] omits the token while the gateway is disabled, and never contains the provider's key",
  async () => {
    await using world = await openWorkspace();
    expect(JSON.stringify(await world.readEnvironment())).not.toContain(MODEL_KEY);
    await putGatewaySettings(world.owner, { in_workspaces: false });
    expect(Object.keys(await world.readEnvironment())).toEqual(["OPENAI_BASE_URL"]);
    await putGatewaySettings(world.owner, { enabled: false });
    expect(Object.keys(await world.readEnvironment())).toEqual(["OPENAI_BASE_URL"]);
  },
);

test("[GW-4] a model name for one template works only in workspaces of that template", async () => {
  await using world = await openWorkspace();
  const [provider] = await world.owner.get<{ id: string }[]>("/api/v2/chats/providers");
  const mapping = { name: "test-model", targets: [{ provider_id: provider?.id ?? "" }] };
  await putGatewaySettings(world.owner, { names: [Object.assign(mapping, { template_ids: [world.template_id] })] });
  expect((await callModel(`${world.base}/anthropic`, world.token)).status).toBe(404);
  const { ANTHROPIC_AUTH_TOKEN } = await world.readEnvironment();
  const pendingResponse = callModel(`${world.base}/anthropic`, ANTHROPIC_AUTH_TOKEN);
  (await world.upstream.next()).answer(200, {});
  expect((await pendingResponse).status).toBe(200);
});
