// Agents that sign in with the machine identity of a cloud: how the agent is found, and how long its token is valid.
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { updateBy } from "#db/engine/sql.ts";
import { agents } from "#db/schema/agents.ts";
import { updateWorkspace } from "#db/workspaces/workspaces.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError, Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, type SeededAgent, seedAgent, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, tempDirectory } from "#test/support/server.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";
import { connectAgent } from "./rpc-agent.ts";

const BASE = "/api/v2/workspaceagents";
const PATH = `${BASE}/cloud-c-instance-identity`;
const pair = await generateKeyPair("RS256", { extractable: true });

/** Returns an identity token as cloud C issues it to this machine. */
const createIdentityToken = (instance_id: string, now: number) =>
  new SignJWT({ google: { compute_engine: { instance_id } } })
    .setProtectedHeader({ alg: "RS256", kid: "one" })
    .setIssuer("https://accounts.google.com")
    .setAudience("coder")
    .setExpirationTime(now / 1000 + 3600)
    .sign(pair.privateKey);

/** Creates a directory with the keys that the server trusts. */
const createTrustedKeys = async (): Promise<{ path: string; env: Record<string, string> } & Disposable> => {
  const directory = tempDirectory();
  mkdirSync(`${directory.path}/c`);
  const jwk = { ...(await exportJWK(pair.publicKey)), kid: "one", alg: "RS256" };
  writeFileSync(`${directory.path}/c/keys.json`, JSON.stringify({ keys: [jwk] }));
  const env = { SLIPWAY_IDENTITY_CERTIFICATES: directory.path };
  return { path: directory.path, env, [Symbol.dispose]: () => directory[Symbol.dispose]() };
};

const openIdentityServer = async () => {
  const trustedKeys = await createTrustedKeys();
  const clock = new ManualClock();
  const server = await startTestServer({ clock, env: trustedKeys.env });
  const signIn = async (instance_id: string, more: object = {}) => {
    const json_web_token = await createIdentityToken(instance_id, clock.now());
    const response = await new Client(server.url).fetch("POST", PATH, { json_web_token, ...more });
    return { status: response.status, body: (await response.json()) as Record<string, string> };
  };
  const isValidToken = async (token: string | undefined): Promise<boolean> => {
    const response = await new Client(server.url, token).fetch("PATCH", `${BASE}/me/logs`, { logs: [{ output: "x" }] });
    return response.status === 200;
  };
  return {
    clock,
    server,
    signIn,
    isValidToken,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      trustedKeys[Symbol.dispose]();
    },
  };
};

describe("signing in", () => {
  test("[II-5] returns the same agent token each time; it replaces the build's token and is revoked with the build", async () => {
    await using world = await openIdentityServer();
    const seeded = await seedAgent(world.server, { agent: { instance_id: "4711" } });
    expect(await world.isValidToken(seeded.agent_token)).toBe(true);
    const { status, body } = await world.signIn("4711");
    expect([status, Object.keys(body)]).toEqual([200, ["session_token"]]);
    const token = body.session_token as string;
    expect(token).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(await world.isValidToken(token)).toBe(true);
    world.clock.advance(1_001);
    expect(await world.isValidToken(seeded.agent_token)).toBe(false);
    expect((await world.signIn("4711")).body.session_token).toBe(token);
    await using connection = await connectAgent(world.server, token);
    await connection.agent.getServiceBanner({});
    const otherAgent = await seedAgent(world.server, { agent: { instance_id: "4712" } });
    expect((await world.signIn("4712")).body.session_token).not.toBe(token);
    await supersedeAgent(world.server, seeded);
    expect(await world.isValidToken(token)).toBe(false);
    expect((await world.signIn("4711")).status).toBe(404);
    expect(await world.isValidToken(otherAgent.agent_token)).toBe(false);
  });

  test("[II-6] returns 404 if no agent has the instance ID, and 409 if several have it and none is selected", async () => {
    await using world = await openIdentityServer();
    const { store } = getContext(world.server);
    const rename = (seeded: SeededAgent, name: string) =>
      store.commit([updateBy(agents, agents.id)(seeded.agent_id, { name })]);
    const firstAgent = await seedAgent(world.server, { agent: { instance_id: "i-1" } });
    await rename(firstAgent, "zeta");
    expect(await world.signIn("i-2")).toEqual({
      status: 404,
      body: { message: 'No agent has the instance id "i-2".' },
    });
    expect((await world.signIn("i-1", { agent_name: "zeta" })).status).toBe(200);
    const missing = await world.signIn("i-1", { agent_name: "alpha" });
    expect(missing).toEqual({ status: 404, body: { message: 'No agent named "alpha" has the instance id "i-1".' } });
    const { workspace_id, build_id, resource_id } = firstAgent;
    const otherAgent = await seedAgent(world.server, {
      agent: { instance_id: "i-1", workspace_id, build_id, resource_id },
    });
    await rename(otherAgent, "alpha");
    const ambiguous = await world.signIn("i-1");
    expect(ambiguous.status).toBe(409);
    expect(ambiguous.body.message).toContain("alpha, zeta");
    const selected = await world.signIn("i-1", { agent_name: "alpha" });
    expect(selected.status).toBe(200);
    await getContext(world.server).agents.ask(otherAgent.agent_id, "settle", {});
    // Child agents and agents of older builds never match.
    await seedAgent(world.server, { agent: { instance_id: "i-3", parent_id: firstAgent.agent_id } });
    expect((await world.signIn("i-3")).status).toBe(404);
    await supersedeAgent(world.server, firstAgent);
    expect((await world.signIn("i-1")).status).toBe(404);
  });

  test("[II-9] returns a token only for the workspace that named the instance first, even while it is stopped", async () => {
    await using world = await openIdentityServer();
    const firstAgent = await seedAgent(world.server, { agent: { instance_id: "i-1" } });
    const { session_token } = (await world.signIn("i-1")).body;
    world.clock.advance(1_000);
    const secondAgent = await seedAgent(world.server, { agent: { instance_id: "i-1" } });
    expect((await world.signIn("i-1")).body.session_token).toBe(session_token);
    await supersedeAgent(world.server, firstAgent);
    expect((await world.signIn("i-1")).status).toBe(404);
    expect((await world.signIn("i-1", { agent_name: "main" })).status).toBe(404);
    // After that workspace is deleted, another one can use the instance.
    const { store } = getContext(world.server);
    await store.commit([updateWorkspace(firstAgent.workspace_id, { deleted: true })]);
    const newToken = (await world.signIn("i-1")).body.session_token;
    expect(newToken).toBeDefined();
    expect(newToken).not.toBe(session_token);
    expect(await world.isValidToken(newToken)).toBe(true);
    expect(await world.isValidToken(secondAgent.agent_token)).toBe(false);
  });

  test("[II-7] is available under both names of each cloud; an invalid identity returns 401 and names the cloud", async () => {
    await using world = await openIdentityServer();
    await seedAgent(world.server, { agent: { instance_id: "" } });
    const client = new Client(world.server.url);
    const json_web_token = await createIdentityToken("none", world.clock.now());
    const calls: [string, string, object][] = [
      ["a", "cloud-a", { document: "{}", signature: "AAAA" }],
      ["a", "aws", { document: "{}", signature: "AAAA" }],
      ["b", "cloud-b", { encoding: "pkcs7", signature: "AAAA" }],
      ["b", "azure", { encoding: "pkcs7", signature: "AAAA" }],
      ["c", "cloud-c", { json_web_token: "a.b.c" }],
      ["c", "google", { json_web_token: "a.b.c" }],
    ];
    for (const [cloud, path, body] of calls) {
      const error = await client
        .post<unknown>(`${BASE}/${path}-instance-identity`, body)
        .catch((thrown: unknown) => thrown);
      if (!(error instanceof ApiError)) throw new Error(`${path} was accepted`);
      expect([error.status, error.body.message]).toEqual([401, `The cloud-${cloud} instance identity is not valid.`]);
    }
    expect((await client.fetch("POST", `${BASE}/google-instance-identity`, { json_web_token })).status).toBe(404);
    expect(
      (await client.fetch("POST", `${BASE}/cloud-b-instance-identity`, { encoding: "der", signature: "AAAA" })).status,
    ).toBe(400);
    expect((await client.fetch("POST", `${BASE}/cloud-a-instance-identity`, { document: "{}" })).status).toBe(400);
  });
});

test("[II-8] a template sets the instance ID of its agent, which each build evaluates again", async () => {
  using trustedKeys = await createTrustedKeys();
  await using world = await openWorld({ env: trustedKeys.env });
  const manifest = {
    ...ECHO,
    resources: [{ name: "vm", agents: [{ name: "dev", instance_id: "vm-{{ workspace.name }}" }] }],
  };
  const { template_id } = await seedTemplate(world.server, manifest);
  const { id } = await createWorkspace(world.admin, template_id, "blue");
  const built = await awaitBuild(world.admin, id);
  expect(built.latest_build.resources[0]?.agents[0]?.instance_id).toBe("vm-blue");
  const signIn = async () =>
    new Client(world.server.url).post<{ session_token: string }>(PATH, {
      json_web_token: await createIdentityToken("vm-blue", Date.now()),
    });
  const { session_token } = await signIn();
  const sendLogs = (token: string) =>
    new Client(world.server.url, token).fetch("PATCH", `${BASE}/me/logs`, { logs: [{ output: "x" }] });
  expect((await sendLogs(session_token)).status).toBe(200);
  await createBuild(world.admin, id, "stop");
  await awaitBuild(world.admin, id);
  expect((await sendLogs(session_token)).status).toBe(401);
  expect(await signIn().catch((error: ApiError) => error.status)).toBe(404);
  await createBuild(world.admin, id, "start");
  const restarted: Workspace = await awaitBuild(world.admin, id);
  expect(restarted.latest_build.status).toBe("running");
  expect((await signIn()).session_token).not.toBe(session_token);
});
