// Signing in with a cloud's machine identity: which agent it is for, what its token allows, and for how long.
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

/** Returns an identity token as cloud c issues it to this machine. */
const identity = (instance_id: string, now: number) =>
  new SignJWT({ google: { compute_engine: { instance_id } } })
    .setProtectedHeader({ alg: "RS256", kid: "one" })
    .setIssuer("https://accounts.google.com")
    .setAudience("coder")
    .setExpirationTime(now / 1000 + 3600)
    .sign(pair.privateKey);

/** Creates the files that the server trusts. */
const trust = async (): Promise<{ path: string; env: Record<string, string> } & Disposable> => {
  const directory = tempDirectory();
  mkdirSync(`${directory.path}/c`);
  const jwk = { ...(await exportJWK(pair.publicKey)), kid: "one", alg: "RS256" };
  writeFileSync(`${directory.path}/c/keys.json`, JSON.stringify({ keys: [jwk] }));
  const env = { SLIPWAY_IDENTITY_CERTIFICATES: directory.path };
  return { path: directory.path, env, [Symbol.dispose]: () => directory[Symbol.dispose]() };
};

const open = async () => {
  const files = await trust();
  const clock = new ManualClock();
  const server = await startTestServer({ clock, env: files.env });
  const signIn = async (instance_id: string, more: object = {}) => {
    const json_web_token = await identity(instance_id, clock.now());
    const response = await new Client(server.url).fetch("POST", PATH, { json_web_token, ...more });
    return { status: response.status, body: (await response.json()) as Record<string, string> };
  };
  const isValidToken = async (token: string | undefined): Promise<boolean> => {
    const answer = new Client(server.url, token).fetch("PATCH", `${BASE}/me/logs`, { logs: [{ output: "x" }] });
    return (await answer).status === 200;
  };
  return {
    clock,
    server,
    signIn,
    works: isValidToken,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      files[Symbol.dispose]();
    },
  };
};

describe("signing in", () => {
  test("[II-5] returns the agent's token, the same each time, which replaces the build's and is revoked with the build", async () => {
    await using at = await open();
    const seeded = await seedAgent(at.server, { agent: { instance_id: "4711" } });
    expect(await at.works(seeded.agent_token)).toBe(true);
    const { status, body } = await at.signIn("4711");
    expect([status, Object.keys(body)]).toEqual([200, ["session_token"]]);
    const token = body.session_token as string;
    expect(token).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(await at.works(token)).toBe(true);
    at.clock.advance(1_001);
    expect(await at.works(seeded.agent_token)).toBe(false);
    expect((await at.signIn("4711")).body.session_token).toBe(token);
    await using connection = await connectAgent(at.server, token);
    await connection.agent.getServiceBanner({});
    const other = await seedAgent(at.server, { agent: { instance_id: "4712" } });
    expect((await at.signIn("4712")).body.session_token).not.toBe(token);
    await supersedeAgent(at.server, seeded);
    expect(await at.works(token)).toBe(false);
    expect((await at.signIn("4711")).status).toBe(404);
    expect(await at.works(other.agent_token)).toBe(false);
  });

  test("[II-6] no agent is 404 with the instance ID, several are 409 with their names unless one is selected", async () => {
    await using at = await open();
    const { store } = getContext(at.server);
    const rename = (seeded: SeededAgent, name: string) =>
      store.commit([updateBy(agents, agents.id)(seeded.agent_id, { name })]);
    const firstAgent = await seedAgent(at.server, { agent: { instance_id: "i-1" } });
    await rename(firstAgent, "zeta");
    expect(await at.signIn("i-2")).toEqual({ status: 404, body: { message: 'No agent has the instance id "i-2".' } });
    expect((await at.signIn("i-1", { agent_name: "zeta" })).status).toBe(200);
    const missed = await at.signIn("i-1", { agent_name: "alpha" });
    expect(missed).toEqual({ status: 404, body: { message: 'No agent named "alpha" has the instance id "i-1".' } });
    const { workspace_id, build_id, resource_id } = firstAgent;
    const otherAgent = await seedAgent(at.server, {
      agent: { instance_id: "i-1", workspace_id, build_id, resource_id },
    });
    await rename(otherAgent, "alpha");
    const both = await at.signIn("i-1");
    expect(both.status).toBe(409);
    expect(both.body.message).toContain("alpha, zeta");
    const named = await at.signIn("i-1", { agent_name: "alpha" });
    expect(named.status).toBe(200);
    await getContext(at.server).agents.ask(otherAgent.agent_id, "settle", {});
    // Child agents, older builds and the empty ID never match.
    await seedAgent(at.server, { agent: { instance_id: "i-3", parent_id: firstAgent.agent_id } });
    expect((await at.signIn("i-3")).status).toBe(404);
    await supersedeAgent(at.server, firstAgent);
    expect((await at.signIn("i-1")).status).toBe(404);
  });

  test("[II-9] an instance belongs to the workspace that named it first, even while that one is stopped", async () => {
    await using at = await open();
    const bob = await seedAgent(at.server, { agent: { instance_id: "i-1" } });
    const { session_token } = (await at.signIn("i-1")).body;
    at.clock.advance(1_000);
    const eve = await seedAgent(at.server, { agent: { instance_id: "i-1" } });
    expect((await at.signIn("i-1")).body.session_token).toBe(session_token);
    await supersedeAgent(at.server, bob);
    expect((await at.signIn("i-1")).status).toBe(404);
    expect((await at.signIn("i-1", { agent_name: "main" })).status).toBe(404);
    // Once that workspace is deleted, the instance can be another's.
    const { store } = getContext(at.server);
    await store.commit([updateWorkspace(bob.workspace_id, { deleted: true })]);
    const later = (await at.signIn("i-1")).body.session_token;
    expect(later).toBeDefined();
    expect(later).not.toBe(session_token);
    expect(await at.works(later)).toBe(true);
    expect(await at.works(eve.agent_token)).toBe(false);
  });

  test("[II-7] is available to anonymous callers under both names of each cloud; an invalid identity returns 401 and names the cloud", async () => {
    await using at = await open();
    await seedAgent(at.server, { agent: { instance_id: "" } });
    const client = new Client(at.server.url);
    const json_web_token = await identity("none", at.clock.now());
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

test("[II-8] a template names the machine of its agent, and each build evaluates it again", async () => {
  using files = await trust();
  await using world = await openWorld({ env: files.env });
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
      json_web_token: await identity("vm-blue", Date.now()),
    });
  const { session_token } = await signIn();
  const logs = (token: string) =>
    new Client(world.server.url, token).fetch("PATCH", `${BASE}/me/logs`, { logs: [{ output: "x" }] });
  expect((await logs(session_token)).status).toBe(200);
  await createBuild(world.admin, id, "stop");
  await awaitBuild(world.admin, id);
  expect((await logs(session_token)).status).toBe(401);
  expect(await signIn().catch((error: ApiError) => error.status)).toBe(404);
  await createBuild(world.admin, id, "start");
  const restarted: Workspace = await awaitBuild(world.admin, id);
  expect(restarted.latest_build.status).toBe("running");
  expect((await signIn()).session_token).not.toBe(session_token);
});
