// The event that makes an agent restart after a claim (facts/platform 5.4). The tests act as the agent.
import { expect } from "bun:test";
import { sha256, uuid } from "#base/ids.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { Lifecycle_State } from "#src/wire/gen/agent_pb.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { readEvents } from "#test/support/net/event-reader.ts";
import { getContext } from "#test/support/seed.ts";
import { tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createBuild, openWorld, type World } from "#test/support/workspaces.ts";
import { connectAgent, type RpcAgent } from "../agents/rpc-agent.ts";

const REINIT = "/api/v2/workspaceagents/me/reinit";
type Page = { workspaces: Workspace[] };

const awaitPrepared = ({ admin, server }: World): Promise<Workspace> =>
  until(async () => {
    const { workspaces } = await admin.get<Page>("/api/v2/workspaces?q=owner:prebuilds");
    const running = workspaces.find(({ latest_build }) => latest_build.status === "running");
    if (!running) await server.context?.scheduler.tick();
    return running;
  });

/** Creates a template with one prebuild, and returns the prebuilt workspace with its agent. */
const openPrepared = async (world: World) => {
  const { admin } = world;
  const manifest: Manifest = {
    provisioner: "echo",
    presets: [{ name: "Ready", parameters: {}, prebuilds: 1 }],
    resources: [{ name: "main", agents: [{ name: "dev" }] }],
  };
  const template = await makeTemplate(admin, JSON.stringify(manifest));
  const [preset] = await admin.get<{ id: string }[]>(`/api/v2/templateversions/${template.active_version_id}/presets`);
  const claim = (client: Client = admin, name = "mine"): Promise<Workspace> =>
    client.post<Workspace>("/api/v2/users/me/workspaces", {
      name,
      template_id: template.id,
      template_version_preset_id: preset?.id,
    });
  return { ...(await nextPrepared(world)), claim };
};

/** Returns the currently ready workspace with a token of its agent. The token must be unique, or the next workspace would have it too. */
const nextPrepared = async (world: World): Promise<{ id: string; agent: Client }> => {
  const token = uuid();
  const { id } = await awaitPrepared(world);
  const sql = "update agents set lifecycle_state = 'ready', token_hash = ? where workspace_id = ?";
  await getContext(world.server).store.commit([{ sql, rows: [[sha256(token), id]] }]);
  return { id, agent: world.admin.withToken(token) };
};

testInProcess("[PB-19] the agent of a prebuild gets no personal data until the claim", async () => {
  await using world = await openWorld();
  const { agent, claim } = await openPrepared(world);
  const fetchKeyStatus = async (): Promise<number> =>
    (await agent.fetch("GET", "/api/v2/workspaceagents/me/gitsshkey")).status;
  expect(await fetchKeyStatus()).toBe(403);
  const { id, latest_build } = await claim();
  await awaitBuild(world.admin, id);
  expect(await fetchKeyStatus()).toBe(200);
  const logs = await world.admin.get<{ output: string }[]>(`/api/v2/workspacebuilds/${latest_build.id}/logs`);
  expect(logs.map(({ output }) => output).join()).not.toContain("gets no secrets");
});

/** Waits until a caller waits for this workspace's claim. */
const awaitFollower = async ({ server }: World, id: string): Promise<void> => {
  await until(() => getContext(server).topics.hasListeners("reinit", id));
};

/** The three ways in which agents wait for the claim. Each returns the event, or the status of an error. */
const WAIT_METHODS: Readonly<Record<string, (world: World, agent: Client, query: string) => Promise<unknown>>> = {
  JSON: async (_, agent, query) => {
    const response = await agent.fetch("GET", REINIT + query);
    return response.status === 200 ? response.json() : response.status;
  },
  events: async (_, agent, query) =>
    readEvent(await agent.fetch("GET", REINIT + query, undefined, { headers: { Accept: "text/event-stream" } })),
  "a genuine agent": async ({ server }, { token }, query) =>
    readEvent(
      await fetch(new URL(REINIT + query, server.url), { headers: { "Coder-Session-Token": token as string } }),
    ),
};

const readEvent = async (response: Response): Promise<unknown> => {
  if (response.status !== 200) return response.status;
  const data: unknown[] = [];
  for await (const event of readEvents(response)) if (event.event === "data") data.push(event.data);
  return data.length === 1 ? data[0] : data;
};

for (const [format, wait] of Object.entries(WAIT_METHODS)) {
  testInProcess(
    `[PB-9] [RI-2] [RI-3] each of five callers that wait during a claim gets its event: ${format}`,
    async () => {
      await using world = await openWorld();
      const { claim, ...first } = await openPrepared(world);
      for (let n = 0; n < 5; n++) {
        const { id, agent } = n === 0 ? first : await nextPrepared(world);
        const waiting = wait(world, agent, n % 2 === 0 ? "?wait=true" : "");
        await awaitFollower(world, id);
        const claimed = await claim(world.admin, `mine-${n}`);
        expect(await waiting).toEqual({ reason: "prebuild_claimed", workspace_id: id, owner_id: claimed.owner_id });
      }
    },
  );
}

testInProcess("[PB-9] a caller that starts to wait at the moment of the claim gets the event", async () => {
  await using world = await openWorld();
  const { claim, ...first } = await openPrepared(world);
  for (let n = 0; n < 10; n++) {
    const { id, agent } = n === 0 ? first : await nextPrepared(world);
    const claiming = claim(world.admin, `mine-${n}`);
    // Each round starts the wait some event loop turns later, to cover every stage of the claim.
    for (let turns = 0; turns < n * 3; turns++) await new Promise((done) => setImmediate(done));
    const event = await WAIT_METHODS.JSON?.(world, agent, "?wait=true");
    const claimed = await claiming;
    expect(event).toEqual({ reason: "prebuild_claimed", workspace_id: id, owner_id: claimed.owner_id });
  }
});

testInProcess(
  "[PB-9] after a restart of the server, a caller gets the event of an earlier claim, with and without `wait`",
  async () => {
    using directory = tempDirectory();
    let token = "";
    let event: object = {};
    {
      await using world = await openWorld({ directory: directory.path });
      const { id, agent, claim } = await openPrepared(world);
      token = agent.token as string;
      const claimed = await claim();
      await awaitBuild(world.admin, id);
      event = { reason: "prebuild_claimed", workspace_id: id, owner_id: claimed.owner_id };
    }
    await using world = await openWorld({ directory: directory.path });
    const agent = world.admin.withToken(token);
    expect(await WAIT_METHODS.JSON?.(world, agent, "")).toEqual(event);
    expect(await WAIT_METHODS.events?.(world, agent, "?wait=true")).toEqual(event);
  },
);

testInProcess(
  "[PB-9] callers get the event when the claim's build has ended, and later callers while that build is the latest",
  async () => {
    await using world = await openWorld();
    const { admin } = world;
    const { id, agent, claim } = await openPrepared(world);
    const claimed = await claim();
    expect(claimed.id).toBe(id);
    const event = { reason: "prebuild_claimed", workspace_id: id, owner_id: claimed.owner_id };
    expect(await agent.get<unknown>(`${REINIT}?wait=true`)).toEqual(event);
    await awaitBuild(admin, id);
    for (let i = 0; i < 2; i++) expect(await agent.get<unknown>(`${REINIT}?wait=true`)).toEqual(event);
    // An agent that lost the connection and does not send `wait` also gets it, until the new agent has started.
    expect(await agent.get<unknown>(REINIT)).toEqual(event);
    await using connection = await connectAgent(world.server, agent.token as string);
    await connection.agent.updateLifecycle({ lifecycle: { state: Lifecycle_State.STARTING } });
    expect((await agent.fetch("GET", REINIT)).status).toBe(409);
    expect(await agent.get<unknown>(`${REINIT}?wait=true`)).toEqual(event);
    // The next build has its own agents, for which there was no claim.
    const { id: laterBuildId } = await createBuild(admin, id, "start");
    await awaitBuild(admin, id);
    expect((await agent.fetch("GET", `${REINIT}?wait=true`)).status).toBe(401);
    await getContext(world.server).store.commit([
      { sql: "update agents set token_hash = null where workspace_id = ?", rows: [[id]] },
      {
        sql: "update agents set token_hash = ? where build_id = ?",
        rows: [[sha256(agent.token as string), laterBuildId]],
      },
    ]);
    expect((await agent.fetch("GET", `${REINIT}?wait=true`)).status).toBe(409);
  },
);

testInProcess("[PB-9] a caller gets 409 if the claim's build fails", async () => {
  await using world = await openWorld({ env: { SLIPWAY_PROVISIONER_SLOTS: "1" } });
  const { admin, server } = world;
  const { id, agent, claim } = await openPrepared(world);
  const { clock, workspaces, jobs } = getContext(server);
  // A job occupies the only slot, so that the claim's build waits.
  const slot = Promise.withResolvers<void>();
  jobs.submit({ id: uuid(), created_at: clock.now(), urgency: "person", run: () => slot.promise });
  const claimed = await claim();
  const waiting = agent.fetch("GET", `${REINIT}?wait=true`);
  await admin.patch(`/api/v2/workspacebuilds/${claimed.latest_build.id}/cancel`);
  expect([409, 503]).toContain((await waiting).status);
  expect((await agent.fetch("GET", `${REINIT}?wait=true`)).status).toBe(409);
  slot.resolve();
  expect(await workspaces.ask(id, "favor", { favorite: true })).toBe("done");
});

testInProcess("[PB-8] from the claim on, the token of the running processes belongs to the new agent", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { agent, claim } = await openPrepared(world);
  const token = agent.token as string;
  const getAgentId = async ({ agent: api }: RpcAgent): Promise<string> =>
    Buffer.from((await api.getManifest({})).agentId).toString("hex");
  await using first = await connectAgent(world.server, token);
  const before = await getAgentId(first);
  const claimed = await claim();
  await first.closed;
  await using second = await connectAgent(world.server, token);
  const after = await getAgentId(second);
  expect(after).not.toBe(before);
  const running = await awaitBuild(admin, claimed.id);
  expect(running.latest_build.resources[0]?.agents[0]?.id.replaceAll("-", "")).toBe(after);
});

testInProcess("[PB-9] a caller of an unclaimed prebuild waits", async () => {
  await using world = await openWorld();
  const { agent } = await openPrepared(world);
  const abort = new AbortController();
  const options = { headers: { Accept: "text/event-stream" }, signal: abort.signal };
  expect((await agent.fetch("GET", `${REINIT}?wait=true`, undefined, options)).status).toBe(200);
  abort.abort();
});
