// When a copy of an agent's token becomes invalid that a guest took from a workspace while it was shared with them.
import { expect, test } from "bun:test";
import { sha256, uuid, uuidFromBytes } from "#base/ids.ts";
import { insertOAuth2App } from "#db/oauth2/apps.ts";
import { insertOAuth2Grant } from "#db/oauth2/grants.ts";
import { insertKey } from "#db/users/api-keys.ts";
import type { WorkspaceAcl } from "#schema/workspaces/acl.ts";
import { Client } from "#src/client.ts";
import { openSharedWorkspace } from "#test/api/workspaces/shared-workspace.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { getContext } from "#test/support/seed.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { startAgentProcess, TestTerminal } from "./reach.ts";
import { connectAgent, type RpcAgent } from "./rpc-agent.ts";

/** The shared workspace with a real daemon in it. */
const openStory = async () => {
  const shared = await openSharedWorkspace();
  const { clients, server, workspace, token } = shared;
  const agent_id = workspace.latest_build.resources[0]?.agents[0]?.id ?? "";
  const home = tempDirectory();
  const start = () => startAgentProcess(server, { agent_id, agent_token: token }, home.path);
  let daemon = await start();
  const path = (rest: string) => `/api/v2/workspaceagents/${agent_id}/${rest}`;
  /** What a person with a shell in the workspace finds as the agent's token. */
  const readToken = async (person: Client): Promise<string> => {
    using terminal = await TestTerminal.open(
      { owner: person, path },
      { command: 'echo "<$(cat "$SLIPWAY_AGENT_TOKEN_FILE")>"; cat' },
    );
    return /<([0-9a-f-]{36})>/.exec(await terminal.until(/<[0-9a-f-]{36}>/))?.[1] ?? "";
  };
  const statusWith = async (copy: string): Promise<number> =>
    (await clients.guest.withToken(copy).fetch("GET", "/api/v2/workspaceagents/me/gitsshkey")).status;
  return {
    ...shared,
    agentPath: path,
    readToken,
    statusWith,
    stopDaemon: () => daemon[Symbol.asyncDispose](),
    startDaemon: async () => {
      daemon = await start();
    },
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      home[Symbol.dispose]();
      await shared[Symbol.asyncDispose]();
    },
  };
};

test("[AG-28] a copy of the token ends when a guest loses access; the owner's terminal and the daemon continue, also after a restart", async () => {
  await using story = await openStory();
  const { clients, path, idOf, agentPath, server, readToken, statusWith, stopDaemon, startDaemon } = story;
  const copy = await readToken(clients["shared use"]);
  expect(await statusWith(copy)).toBe(200);
  using ours = await TestTerminal.open({ owner: clients.owner, path: agentPath }, { command: "cat" });
  ours.sendInput({ data: "before\r" });
  await ours.until(/before/);
  // A lower role still has access.
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("amy")]: "use" } });
  expect(await statusWith(copy)).toBe(200);
  await using watching = await connectAgent(server, copy, "?version=2.10&role=watcher");
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  expect((await watching.closed).code).toBe(1001);
  expect(await statusWith(copy)).toBe(401);
  await expect(connectAgent(server, copy)).rejects.toThrow();
  ours.sendInput({ data: "after\r" });
  await ours.until(/after/);
  // Programs get the new token when the server has accepted it.
  await until(async () => (await readToken(clients.owner)) !== copy);
  const next = await readToken(clients.owner);
  expect(await statusWith(next)).toBe(200);
  await stopDaemon();
  await startDaemon();
  expect([await readToken(clients.owner), await statusWith(copy)]).toEqual([next, 401]);
});

test("[AG-28] a copy of the token ends when a member leaves the group or the organization, or is suspended", async () => {
  await using story = await openStory();
  const { clients, path, idOf, organization_id, readToken, statusWith } = story;
  const admin = clients["site owner"];
  const { id: group } = await admin.post<{ id: string }>(`/api/v2/organizations/${organization_id}/groups`, {
    name: "helpers",
  });
  await admin.patch(`/api/v2/groups/${group}`, { add_users: [idOf("bob")] });
  await clients.owner.patch(`${path}/acl`, { group_roles: { [group]: "use" } });
  const ofBob = await readToken(clients.member);
  await admin.patch(`/api/v2/groups/${group}`, { remove_users: [idOf("bob")] });
  await until(async () => (await statusWith(ofBob)) === 401);
  await until(async () => (await statusWith(await readToken(clients["shared use"]))) === 200);
  const ofUma = await readToken(clients["shared use"]);
  await admin.put(`/api/v2/users/${idOf("uma")}/status/suspend`);
  await until(async () => (await statusWith(ofUma)) === 401);
  await until(async () => (await statusWith(await readToken(clients["shared admin"]))) === 200);
  const ofAmy = await readToken(clients["shared admin"]);
  await admin.delete(`/api/v2/organizations/${organization_id}/members/${idOf("amy")}`);
  await until(async () => (await statusWith(ofAmy)) === 401);
});

test("[AG-28] a copy of the token ends when an application that could run commands loses its grant, and when an owner loses the role", async () => {
  await using story = await openStory();
  const { clients, idOf, server, readToken, statusWith } = story;
  const [now, user_id, app_id] = [Date.now(), idOf("ada"), uuid()];
  const times = { created_at: now, updated_at: now };
  const expires_at = now + 3_600_000;
  const authorize = async (key_id: string, scopes: string[]): Promise<void> => {
    const key = {
      id: key_id,
      user_id,
      secret_hash: key_id,
      login_type: "oauth2_provider_app",
      scope: "limited",
      scopes,
    };
    const grant = { key_id, app_id, user_id, scopes, redirect_uri: "", code_hash: key_id, code_challenge: "" };
    await getContext(server).store.commit([
      insertKey({ ...key, ...times, lifetime_seconds: 3_600, last_used: now, expires_at }),
      insertOAuth2Grant({ ...grant, ...times, code_expires_at: expires_at, redeemed_at: now }),
    ]);
  };
  await getContext(server).store.commit([
    insertOAuth2App({ id: app_id, name: "Editor", redirect_uris: [], auth_method: "none", ...times }),
  ]);
  await authorize("reads00000", ["workspace:read"]);
  await authorize("enters0000", ["workspace:ssh"]);
  const copy = await readToken(clients.owner);
  await clients.owner.delete("/api/v2/users/me/oauth2-grants/reads00000");
  await clients.owner.delete("/api/v2/users/me/oauth2-grants/enters0000");
  await until(async () => (await statusWith(copy)) === 401);
  await until(async () => (await statusWith(await readToken(clients.owner))) === 200);
  // Only the second application could enter.
  const agents = await getContext(server).store.all({
    sql: "select token_generation from agents where name = 'dev'",
    params: [],
    map: ([generation]) => Number(generation),
  });
  expect(agents).toEqual([1]);
  const admin = clients["site owner"];
  await admin.put(`/api/v2/users/${idOf("bob")}/roles`, { roles: ["owner"] });
  const ofBob = await readToken(clients.member);
  await admin.put(`/api/v2/users/${idOf("bob")}/roles`, { roles: [] });
  await until(async () => (await statusWith(ofBob)) === 401);
});

test("[AG-28] a copy of the token ends when a key that could enter the workspace is deleted, but not when a person signs out", async () => {
  await using story = await openStory();
  const { clients, server, readToken, statusWith } = story;
  const ada = clients.owner;
  const createToken = async (scopes: string[]): Promise<string> =>
    (await ada.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes })).key.split("-")[0] as string;
  const [reads, enters] = [await createToken(["workspace:read"]), await createToken(["workspace:ssh"])];
  const copy = await readToken(ada);
  await ada.delete(`/api/v2/users/me/keys/${reads}`);
  const second = await ada.post<{ key: string }>("/api/v2/users/me/keys");
  await new Client(server.url, second.key).post("/api/v2/users/logout");
  await ada.delete(`/api/v2/users/me/keys/${enters}`);
  await until(async () => (await statusWith(copy)) === 401);
  await until(async () => (await statusWith(await readToken(ada))) === 200);
  const agents = await getContext(server).store.all({
    sql: "select token_generation from agents where name = 'dev'",
    params: [],
    map: ([generation]) => Number(generation),
  });
  expect(agents).toEqual([1]);
});

test("[AG-28] a daemon that was not connected when someone lost access gets the new token with its next connection", async () => {
  await using story = await openStory();
  const { clients, path, readToken, statusWith, stopDaemon, startDaemon } = story;
  const copy = await readToken(clients["shared use"]);
  const { users, groups } = await clients.owner.get<WorkspaceAcl>(`${path}/acl`);
  const empty = (ids: readonly { id: string }[]) => Object.fromEntries(ids.map(({ id }) => [id, ""]));
  await stopDaemon();
  await clients.owner.patch(`${path}/acl`, { user_roles: empty(users), group_roles: empty(groups) });
  await startDaemon();
  await until(async () => (await statusWith(copy)) === 401);
  await until(async () => (await statusWith(await readToken(clients.owner))) === 200);
});

test("[AG-29] a daemon that followed another one while the workspace was shared gets no new token: the guest may have started it", async () => {
  await using story = await openStory();
  const { clients, path, idOf, readToken, statusWith, stopDaemon, startDaemon } = story;
  const copy = await readToken(clients["shared use"]);
  await stopDaemon();
  await startDaemon();
  expect(await readToken(clients["shared use"])).toBe(copy);
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  await until(async () => (await statusWith(copy)) === 401);
  const { notifications } = await clients.owner.get<{ notifications: { title: string }[] }>(
    "/api/v2/notifications/inbox",
  );
  expect(notifications[0]?.title).toContain("Restart");
  const { status } = await clients.owner.get<{ status: string }>(story.agentPath("").replace(/\/$/, "") as "/api/v2");
  expect(status).not.toBe("connected");
});

const makeSubAgent = async ({ agent }: RpcAgent, name: string) => {
  const request = { name, directory: "/", architecture: "amd64", operatingSystem: "linux" };
  const { agent: created } = await agent.createSubAgent(request);
  if (!created) throw new Error("no agent was created");
  return { agent_id: uuidFromBytes(created.id), agent_token: uuidFromBytes(created.authToken) };
};

test("[AG-28] sub-agents are deleted when a guest loses access, if they or their parent are not connected", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, idOf, server, token } = shared;
  const statusWith = async (copy: string): Promise<number> =>
    (await clients.guest.withToken(copy).fetch("GET", "/api/v2/workspaceagents/me/gitsshkey")).status;
  const parent = await connectAgent(server, token);
  const [idle, used] = [await makeSubAgent(parent, "idle"), await makeSubAgent(parent, "used")];
  using home = tempDirectory();
  await using _daemon = await startAgentProcess(server, used, home.path);
  const list = async () => (await parent.agent.listSubAgents({})).agents.map(({ name }) => name);
  // A lower role still has access.
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("amy")]: "use" } });
  expect(await list()).toEqual(["idle", "used"]);
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  expect([await statusWith(idle.agent_token), await list()]).toEqual([401, ["used"]]);
  await makeSubAgent(parent, "idle");
  expect(await list()).toEqual(["idle", "used"]);
  await parent[Symbol.asyncDispose]();
  const { owner } = clients;
  const status = () =>
    owner.get<{ status: string }>(
      `/api/v2/workspaceagents/${shared.workspace.latest_build.resources[0]?.agents[0]?.id}`,
    );
  await until(async () => (await status()).status === "disconnected");
  await owner.patch(`${path}/acl`, { user_roles: { [idOf("amy")]: "" } });
  await until(async () => (await statusWith(used.agent_token)) === 401);
  await using again = await connectAgent(server, token);
  expect((await again.agent.listSubAgents({})).agents).toEqual([]);
});

test("[AG-28] a connected sub-agent that the workspace's own daemon did not create gets no new token and is deleted", async () => {
  await using story = await openStory();
  const { clients, path, idOf, server, workspace, agentPath, readToken, statusWith } = story;
  const copy = await readToken(clients["shared use"]);
  // A guest can do this while the daemon is paused.
  const [agent_id, agent_token] = [uuid(), uuid()];
  const described = { directory: "/", architecture: "amd64", operating_system: "linux", display_apps: [], apps: [] };
  const created = Object.assign({ id: agent_id, token_hash: sha256(agent_token), name: "theirs" }, described);
  const parent_id = workspace.latest_build.resources[0]?.agents[0]?.id ?? "";
  await getContext(server).agents.ask(parent_id, "createSubAgent", created);
  const subAgent = { agent_id, agent_token };
  using home = tempDirectory();
  await using _rogue = await startAgentProcess(server, subAgent, home.path);
  expect(await statusWith(subAgent.agent_token)).toBe(200);
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  await until(async () => (await statusWith(copy)) === 401);
  await until(async () => (await statusWith(subAgent.agent_token)) === 401);
  const rogue = await clients.owner.fetch("GET", agentPath("").replace(/[^/]+\/$/, subAgent.agent_id) as `/${string}`);
  expect(rogue.status).toBe(404);
});

test("[AG-29] sub-agents are deleted with the token of an agent that a second daemon wants to replace", async () => {
  await using story = await openStory();
  const { clients, path, idOf, server, readToken, statusWith, stopDaemon, startDaemon } = story;
  const copy = await readToken(clients["shared use"]);
  await stopDaemon();
  const first = await connectAgent(server, copy);
  const subAgent = await makeSubAgent(first, "theirs");
  await using inside = await connectAgent(server, subAgent.agent_token);
  await inside.agent.getServiceBanner({});
  await first[Symbol.asyncDispose]();
  await startDaemon();
  await expect(connectAgent(server, copy)).rejects.toThrow();
  expect(await statusWith(subAgent.agent_token)).toBe(200);
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  expect((await inside.closed).code).toBe(1001);
  expect(await statusWith(subAgent.agent_token)).toBe(401);
});

test("[AG-29] a copy of the token takes nothing over while the daemon is connected; a program that tries gets no new token, nor does the daemon", async () => {
  await using story = await openStory();
  const { clients, path, idOf, server, agentPath, readToken, statusWith } = story;
  const copy = await readToken(clients["shared use"]);
  await expect(connectAgent(server, copy)).rejects.toThrow();
  using home = tempDirectory();
  const copied = Bun.spawn([...toProgramCommand(), "agent"], {
    env: {
      PATH: process.env.PATH ?? "",
      HOME: home.path,
      SLIPWAY_AGENT_TOKEN: copy,
      SLIPWAY_AGENT_URL: server.url.href,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const reader = copied.stderr.getReader();
  let message = "";
  while (!message.includes("not connected")) message += new TextDecoder().decode((await reader.read()).value);
  // Chats and terminals of the owner still run in the workspace.
  using ours = await TestTerminal.open({ owner: clients.owner, path: agentPath }, { command: "pwd; cat" });
  expect(await ours.until(/\//)).not.toContain(home.path);
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  await until(async () => (await statusWith(copy)) === 401);
  const { notifications } = await clients.owner.get<{ notifications: { title: string }[] }>(
    "/api/v2/notifications/inbox",
  );
  expect(notifications.map(({ title }) => title)).toEqual(["Restart dev"]);
  copied.kill("SIGKILL");
  await copied.exited;
});
