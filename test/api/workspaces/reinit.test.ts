// The event that makes an agent begin anew belongs to the build of the claim (facts/platform 5.4): a test is the agent here.
import { expect, setDefaultTimeout } from "bun:test";
import { sha256, uuid } from "#base/ids.ts";
import type { Manifest } from "#schema/manifest.ts";
import type { Workspace } from "#schema/workspace.ts";
import type { Client } from "#src/client.ts";
import { testInside } from "#test/support/inside.ts";
import { contextOf } from "#test/support/seed.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, createBuild, openWorld, type World } from "#test/support/workspaces.ts";
import { connectAgent, type RpcAgent } from "../agents/rpc-agent.ts";

// A loaded machine may take its time.
setDefaultTimeout(60_000);

const REINIT = "/api/v2/workspaceagents/me/reinit";
type Page = { workspaces: Workspace[] };

const prepared = async ({ admin, server }: World): Promise<Workspace> => {
  for (;;) {
    const { workspaces } = await admin.get<Page>("/api/v2/workspaces?q=owner:prebuilds");
    const [one] = workspaces.filter(({ latest_build }) => latest_build.status === "running");
    if (one) return one;
    await server.context?.scheduler.tick();
    await new Promise((done) => setTimeout(done, 10));
  }
};

/** A workspace that is kept ready, with its agent. */
const openPrepared = async (world: World) => {
  const { admin, server } = world;
  const token = uuid();
  const manifest: Manifest = {
    provisioner: "echo",
    presets: [{ name: "Ready", parameters: {}, prebuilds: 1 }],
    resources: [{ name: "main", agents: [{ name: "dev" }] }],
  };
  const template = await makeTemplate(admin, JSON.stringify(manifest));
  const [preset] = await admin.get<{ id: string }[]>(`/api/v2/templateversions/${template.active_version_id}/presets`);
  const { id } = await prepared(world);
  // Its scripts have run. Its token is known to nobody else, or the next one that is kept ready would have it.
  const sql = "update agents set lifecycle_state = 'ready', token_hash = ? where workspace_id = ?";
  await contextOf(server).store.commit([{ sql, rows: [[sha256(token), id]] }]);
  const claim = (client: Client = admin): Promise<Workspace> =>
    client.post<Workspace>("/api/v2/users/me/workspaces", {
      name: "mine",
      template_id: template.id,
      template_version_preset_id: preset?.id,
    });
  return { id, agent: admin.as(token), claim };
};

testInside(
  "[PB-9] whoever waits hears of the claim once its build has ended; whoever asks later hears it while that build is the latest",
  async () => {
    await using world = await openWorld();
    const { admin } = world;
    const { id, agent, claim } = await openPrepared(world);
    const mine = await claim();
    expect(mine.id).toBe(id);
    const event = { reason: "prebuild_claimed", workspace_id: id, owner_id: mine.owner_id };
    expect(await agent.get(`${REINIT}?wait=true`)).toEqual(event);
    await awaitBuild(admin, id);
    for (let again = 0; again < 2; again++) expect(await agent.get(`${REINIT}?wait=true`)).toEqual(event);
    // Without it only what happens from now on is heard, and that is nothing.
    expect((await agent.fetch("GET", REINIT)).status).toBe(409);
    // The build after it has agents of its own, and for them there was no claim.
    const { id: later } = await createBuild(admin, id, "start");
    await awaitBuild(admin, id);
    expect((await agent.fetch("GET", `${REINIT}?wait=true`)).status).toBe(401);
    await contextOf(world.server).store.commit([
      { sql: "update agents set token_hash = null where workspace_id = ?", rows: [[id]] },
      { sql: "update agents set token_hash = ? where build_id = ?", rows: [[sha256(agent.token as string), later]] },
    ]);
    expect((await agent.fetch("GET", `${REINIT}?wait=true`)).status).toBe(409);
  },
);

testInside("[PB-9] a claim whose build has failed is 409", async () => {
  await using world = await openWorld({ env: { SLIPWAY_PROVISIONER_SLOTS: "1" } });
  const { admin, server } = world;
  const { id, agent, claim } = await openPrepared(world);
  const { clock, workspaces, jobs } = contextOf(server);
  // Nothing else gets the only slot, so the build of the claim waits.
  const free = Promise.withResolvers<void>();
  jobs.submit({ id: uuid(), created_at: clock.now(), urgency: "person", run: () => free.promise });
  const mine = await claim();
  const waiting = agent.fetch("GET", `${REINIT}?wait=true`);
  await admin.patch(`/api/v2/workspacebuilds/${mine.latest_build.id}/cancel`);
  expect([409, 503]).toContain((await waiting).status);
  expect((await agent.fetch("GET", `${REINIT}?wait=true`)).status).toBe(409);
  free.resolve();
  expect(await workspaces.ask(id, "favor", { favorite: true })).toBe("done");
});

testInside(
  "[PB-8] the token of what runs is the new agent's from the claim on, and the one before it hears that it is gone",
  async () => {
    await using world = await openWorld();
    const { admin } = world;
    const { agent, claim } = await openPrepared(world);
    const token = agent.token as string;
    const idOf = async ({ agent: api }: RpcAgent): Promise<string> =>
      Buffer.from((await api.getManifest({})).agentId).toString("hex");
    await using first = await connectAgent(world.server, token);
    const before = await idOf(first);
    const mine = await claim();
    await first.closed;
    await using second = await connectAgent(world.server, token);
    const after = await idOf(second);
    expect(after).not.toBe(before);
    const running = await awaitBuild(admin, mine.id);
    expect(running.latest_build.resources[0]?.agents[0]?.id.replaceAll("-", "")).toBe(after);
  },
);

testInside("[PB-9] one that nobody has claimed is waited for", async () => {
  await using world = await openWorld();
  const { agent } = await openPrepared(world);
  const abort = new AbortController();
  const options = { headers: { Accept: "text/event-stream" }, signal: abort.signal };
  expect((await agent.fetch("GET", `${REINIT}?wait=true`, undefined, options)).status).toBe(200);
  abort.abort();
});
