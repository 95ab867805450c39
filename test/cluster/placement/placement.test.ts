// The node a request belongs to: declared by every operation, and tested with requests about existing objects in a real server's store.
import { expect } from "bun:test";
import { sha256, uuid } from "#base/ids.ts";
import { toShard } from "#base/shards.ts";
import type { Query } from "#db/engine/sql.ts";
import { updateBy } from "#db/engine/sql.ts";
import { agents } from "#db/schema/agents.ts";
import { chats } from "#db/schema/chats.ts";
import { workspaces } from "#db/schema/workspaces.ts";
import { ShardIndex } from "#db/shard-index.ts";
import { findUser } from "#db/users/users.ts";
import type { Task } from "#schema/tasks/task.ts";
import { createApp } from "#src/api/app.ts";
import { getOptions } from "#src/api/http/operation.ts";
import { Operations } from "#src/api/http/operations.ts";
import { Placement } from "#src/api/http/placement/placement.ts";
import { findPlacement, needsPlacement } from "#src/api/http/placement/strategies.ts";
import { createChat, openChatWorld } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { getContext, seedAgent, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, ECHO, openWorld } from "#test/support/workspaces.ts";

const SHARD = 77;
const updateWorkspace = updateBy(workspaces, workspaces.id);
const updateAgent = updateBy(agents, agents.id);
const updateChat = updateBy(chats, chats.id);

const server = await forFile(startTestServer());

/** Creates the placement for a server's routes and store, and counts its queries. */
const makePlacement = (target: TestServer) => {
  const { store, clock } = getContext(target);
  const app = createApp(getContext(target));
  const counts = { queries: 0 };
  const countingStore = {
    get<T>(query: Query<T>): Promise<T | undefined> {
      counts.queries += 1;
      return store.get(query);
    },
  };
  const placement = new Placement({
    store: countingStore,
    index: new ShardIndex(countingStore),
    operations: new Operations(app.routes),
    clock,
    config: { wildcard_access_url: "*.apps.example.com" },
    accessUrl: () => target.url,
  });
  const findShard = async (line: string, headers: Record<string, string> = {}) => {
    const [method = "", path = ""] = line.split(" ");
    return placement.shardOf(new Request(new URL(path, target.url).href, { method, headers }));
  };
  return { app, counts, findShard };
};

/** Creates a workspace in a shard other than its owner's, like a claimed prebuild. */
const seed = async () => {
  const seeded = await seedAgent(server);
  await getContext(server).store.commit([updateWorkspace(seeded.workspace_id, { part: SHARD })]);
  return seeded;
};

testInProcess("[CP-20] every operation on an object with its own node declares where it runs", () => {
  const { app } = makePlacement(server);
  const routes = app.routes.filter(({ hooks }) => hooks.detail?.hide !== true);
  const undeclared = routes.filter(
    ({ path, hooks }) => needsPlacement(path) && getOptions(hooks).placement === undefined,
  );
  const undeclaredNames = undeclared.map(({ method, path }) => `${method} ${path}`);
  expect(undeclaredNames.map((name) => `${name} lacks placement: "workspace", "chat", ..., or "first"`)).toEqual([]);
  const byId = routes.flatMap(({ method, path, hooks }) => {
    const { way, variable } = findPlacement({ route: path, declared: getOptions(hooks) });
    const needsNone = ["first", "here", "token", "owner"].includes(way);
    return needsNone || variable !== "" ? [] : [`${method} ${path} has no variable for ${way}`];
  });
  expect(byId).toEqual([]);
});

testInProcess(
  "[CP-20] a request with an ID belongs to its object's shard, a request with an unknown ID to the first node",
  async () => {
    const { findShard } = makePlacement(server);
    const { workspace_id, agent_id } = await seed();
    expect(await findShard(`PATCH /api/v2/workspaces/${workspace_id}`)).toBe(SHARD);
    expect(await findShard(`POST /api/v2/workspaces/${workspace_id.toUpperCase()}/builds`)).toBe(SHARD);
    expect(await findShard(`GET /workspaces/${workspace_id}`)).toBe(SHARD);
    expect(await findShard(`HEAD /api/v2/workspaces/${workspace_id}`)).toBe(SHARD);
    expect(await findShard(`GET /api/v2/workspaceagents/${agent_id}/pty`)).toBe(SHARD);
    expect(await findShard(`GET /terminals/${agent_id}`)).toBe(SHARD);
    for (const missing of [uuid(), "dev", "%00", "%"])
      expect(await findShard(`PATCH /api/v2/workspaces/${missing}`)).toBe(0);
    expect(await findShard("POST /api/v2/templates/nothing/like/this")).toBe(0);
    expect(await findShard("POST /api/v2/users/login")).toBe(0);
    expect(await findShard("GET /derp")).toBe(0);
    expect(await findShard("GET /readyz")).toBe("here");
    expect(await findShard("GET /api/v2/workspaces/watch")).toBe("here");
  },
);

testInProcess(
  "[CP-20] an agent's request belongs to its workspace, however its token is sent, even with a new token",
  async () => {
    const { findShard } = makePlacement(server);
    const { agent_id, agent_token } = await seed();
    const request = "GET /api/v2/workspaceagents/me/reinit";
    expect(await findShard(request, { "Service-Session-Token": agent_token })).toBe(SHARD);
    expect(await findShard(request, { "Coder-Session-Token": agent_token.toUpperCase() })).toBe(SHARD);
    expect(await findShard(request, { cookie: `service_session_token=${agent_token}` })).toBe(SHARD);
    expect(await findShard(request, { authorization: `Bearer ${agent_token}` })).toBe(SHARD);
    expect(await findShard(`${request}?coder_session_token=${agent_token}`)).toBe(SHARD);
    expect(await findShard(request, { "Service-Session-Token": uuid() })).toBe(0);
    expect(await findShard(request)).toBe(0);
    const newToken = uuid();
    await getContext(server).store.commit([updateAgent(agent_id, { token_hash: sha256(newToken) })]);
    expect(await findShard(request, { "Service-Session-Token": newToken })).toBe(SHARD);
  },
);

testInProcess("[CP-20] objects that a user creates belong to the user's shard, by key, ID or name", async () => {
  const { findShard } = makePlacement(server);
  const { owner_id, owner_token, organization_id } = await seed();
  const headers = { "Service-Session-Token": owner_token };
  const shard = toShard(owner_id);
  expect(await findShard("POST /api/v2/chats", headers)).toBe(shard);
  expect(await findShard("POST /api/experimental/chats", headers)).toBe(shard);
  expect(await findShard("GET /api/experimental/chats/watch", headers)).toBe(shard);
  expect(await findShard("POST /api/v2/tasks/me", headers)).toBe(shard);
  expect(await findShard("POST /api/v2/users/me/workspaces", headers)).toBe(shard);
  expect(await findShard(`POST /api/v2/users/${owner_id.toUpperCase()}/workspaces`)).toBe(shard);
  expect(await findShard(`POST /api/v2/organizations/${organization_id}/members/${owner_id}/workspaces`)).toBe(shard);
  const name = await getUsername(owner_id);
  expect(await findShard(`POST /api/v2/users/${name.toUpperCase()}/workspaces`)).toBe(shard);
  expect(await findShard("POST /api/v2/users/unknown/workspaces")).toBe(0);
  expect(await findShard("POST /api/v2/chats", { "Service-Session-Token": "abcdefghij-abcdefghijklmnopqrstuv" })).toBe(
    0,
  );
  expect(await findShard("POST /api/v2/chats")).toBe(0);
});

testInProcess("[CP-20] workspace names lead to their shard, also in hosts and paths of apps", async () => {
  const { findShard } = makePlacement(server);
  const { owner_id, owner_token } = await seed();
  const name = await getUsername(owner_id);
  const headers = { "Service-Session-Token": owner_token };
  expect(await findShard("GET /api/v2/users/me/workspace/DEV", headers)).toBe(SHARD);
  expect(await findShard(`GET /api/v2/users/${owner_id}/workspace/dev/builds/1`)).toBe(SHARD);
  expect(await findShard(`GET /@${name}/dev.main/apps/code/index.html`)).toBe(SHARD);
  expect(await findShard("GET /@me/dev/apps/code/", { cookie: `service_session_token=${owner_token}` })).toBe(SHARD);
  expect(await findShard("POST /x/y", { host: `code--main--dev--${name}.apps.example.com` })).toBe(SHARD);
  expect(await findShard("POST /x/y", { host: `code--main--other--${name}.apps.example.com` })).toBe(0);
  expect(await findShard("POST /api/v2/users/login", { host: "apps.example.com" })).toBe(0);
  expect(await findShard("GET /@me/dev/apps/code/")).toBe(0);
  expect(await findShard("GET /@nonsense")).toBe(0);
});

testInProcess("[CP-21] a repeated lookup needs no query, and an invalid ID never needs one", async () => {
  const { counts, findShard } = makePlacement(server);
  const seeded = await seed();
  const name = await getUsername(seeded.owner_id);
  const requests: [string, Record<string, string>][] = [
    [`PATCH /api/v2/workspaces/${seeded.workspace_id}`, {}],
    [`GET /api/v2/workspaceagents/${seeded.agent_id}/pty`, {}],
    ["PATCH /api/v2/workspaceagents/me/logs", { "Service-Session-Token": seeded.agent_token }],
    [`GET /@${name}/dev/apps/code/a.js`, {}],
  ];
  for (const [line, headers] of requests) expect(await findShard(line, headers)).toBe(SHARD);
  const { queries } = counts;
  for (const [line, headers] of requests) expect(await findShard(line, headers)).toBe(SHARD);
  await supersedeAgent(server, seeded);
  for (const [line, headers] of requests.slice(0, 3)) expect(await findShard(line, headers)).toBe(SHARD);
  for (const line of ["PATCH /api/v2/workspaces/dev", "POST /api/v2/users", "GET /derp"]) await findShard(line);
  await findShard("PATCH /api/v2/workspaceagents/me/logs", { "Service-Session-Token": "no token" });
  expect(counts.queries).toBe(queries);
});

testInProcess("[CP-20] builds, jobs, tasks and versions lead to their object's shard, tasks also by name", async () => {
  await using world = await openWorld({ models: new ScriptedModels() });
  const { store } = getContext(world.server);
  const { findShard } = makePlacement(world.server);
  const template = await makeTemplate(world.admin, JSON.stringify(ECHO));
  const version = template.active_version_id;
  const headers = { "Service-Session-Token": world.admin.token ?? "" };
  const task = await world.admin.post<Task>("/api/v2/tasks/me", {
    template_version_id: version,
    input: "do",
    name: "go",
  });
  const workspaceId = typeof task.workspace_id === "string" ? task.workspace_id : (task.workspace_id?.uuid ?? "");
  const { latest_build: build } = await awaitBuild(world.admin, workspaceId);
  await store.commit([updateWorkspace(workspaceId, { part: SHARD })]);
  const jobs = `/api/v2/organizations/${template.organization_id}/provisionerjobs`;
  expect(await findShard(`PATCH /api/v2/workspacebuilds/${build.id}/cancel`)).toBe(SHARD);
  expect(await findShard(`GET ${jobs}/${build.job.id}/logs`)).toBe(SHARD);
  expect(await findShard(`POST /api/v2/tasks/me/${task.id}/pause`)).toBe(SHARD);
  expect(await findShard("POST /api/v2/tasks/me/GO/pause", headers)).toBe(SHARD);
  expect(await findShard("POST /api/v2/tasks/me/nothing/pause", headers)).toBe(0);
  expect(await findShard("POST /api/v2/tasks/unknown/go/pause")).toBe(0);
  expect(await findShard(`POST /api/v2/templateversions/${version}/dry-run`)).toBe(toShard(version));
  const dryRun = await world.admin.post<{ id: string }>(`/api/v2/templateversions/${version}/dry-run`, {});
  expect(await findShard(`GET ${jobs}/${dryRun.id}/logs`)).toBe(toShard(version));
  expect(await findShard(`PATCH /api/v2/templateversions/${version}/dry-run/${dryRun.id}/cancel`)).toBe(
    toShard(version),
  );
});

testInProcess(
  "[CP-20] a chat has its own shard; requests that dial into its workspace use the workspace's",
  async () => {
    await using world = await openChatWorld();
    const { store } = getContext(world.server);
    const { findShard } = makePlacement(world.server);
    const chat = await createChat(world);
    const ownShard = toShard(world.user_id);
    expect(await findShard(`POST /api/v2/chats/${chat.id}/messages`)).toBe(ownShard);
    expect(await findShard(`GET /api/experimental/chats/${chat.id}/stream`)).toBe(ownShard);
    expect(await findShard(`GET /api/v2/chats/${chat.id}/stream/git`)).toBe(ownShard);
    const { workspace_id } = await seedAgent(world.server);
    await store.commit([updateWorkspace(workspace_id, { part: SHARD }), updateChat(chat.id, { workspace_id })]);
    expect(await findShard(`GET /api/v2/chats/${chat.id}/stream/git`)).toBe(SHARD);
    expect(await findShard(`GET /api/experimental/chats/${chat.id}/stream/desktop`)).toBe(SHARD);
    expect(await findShard(`GET /api/v2/chats/${chat.id}/stream`)).toBe(ownShard);
  },
);

const getUsername = async (id: string): Promise<string> => {
  const user = await getContext(server).store.get(findUser({ id }));
  return user?.username ?? "";
};
