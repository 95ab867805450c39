// A guest copies an agent's token from a shared workspace: events that make the copy invalid.
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

/** Opens a shared workspace in which a real daemon runs. */
const openWorkspaceWithDaemon = async () => {
  const shared = await openSharedWorkspace();
  const { clients, server, workspace, token } = shared;
  const agent_id = workspace.latest_build.resources[0]?.agents[0]?.id ?? "";
  const home = tempDirectory();
  const start = () => startAgentProcess(server, { agent_id, agent_token: token }, home.path);
  let daemon = await start();
  const path = (suffix: string) => `/api/v2/workspaceagents/${agent_id}/${suffix}`;
  /** Returns the agent's token that a person finds in a shell of the workspace. */
  const readToken = async (client: Client): Promise<string> => {
    using terminal = await TestTerminal.open(
      { owner: client, path },
      { command: 'echo "<$(cat "$SLIPWAY_AGENT_TOKEN_FILE")>"; cat' },
    );
    return /<([0-9a-f-]{36})>/.exec(await terminal.until(/<[0-9a-f-]{36}>/))?.[1] ?? "";
  };
  const fetchStatusWith = async (copiedToken: string): Promise<number> =>
    (await clients.guest.withToken(copiedToken).fetch("GET", "/api/v2/workspaceagents/me/gitsshkey")).status;
  return {
    ...shared,
    agentPath: path,
    readToken,
    fetchStatusWith,
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

test("[AG-28] when a guest loses access, a copied token becomes invalid; the owner's terminal and the daemon continue", async () => {
  await using world = await openWorkspaceWithDaemon();
  const { clients, path, idOf, agentPath, server, readToken, fetchStatusWith, stopDaemon, startDaemon } = world;
  const copiedToken = await readToken(clients["shared use"]);
  expect(await fetchStatusWith(copiedToken)).toBe(200);
  using ownerTerminal = await TestTerminal.open({ owner: clients.owner, path: agentPath }, { command: "cat" });
  ownerTerminal.sendInput({ data: "before\r" });
  await ownerTerminal.until(/before/);
  // With a lower role, the guest still has access.
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("amy")]: "use" } });
  expect(await fetchStatusWith(copiedToken)).toBe(200);
  await using guestConnection = await connectAgent(server, copiedToken, "?version=2.10&role=watcher");
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  expect((await guestConnection.closed).code).toBe(1001);
  expect(await fetchStatusWith(copiedToken)).toBe(401);
  await expect(connectAgent(server, copiedToken)).rejects.toThrow();
  ownerTerminal.sendInput({ data: "after\r" });
  await ownerTerminal.until(/after/);
  // Programs see the new token as soon as the server accepts it.
  await until(async () => (await readToken(clients.owner)) !== copiedToken);
  const newToken = await readToken(clients.owner);
  expect(await fetchStatusWith(newToken)).toBe(200);
  await stopDaemon();
  await startDaemon();
  expect([await readToken(clients.owner), await fetchStatusWith(copiedToken)]).toEqual([newToken, 401]);
});

test("[AG-28] a copied token becomes invalid when a user leaves the group or the organization, or is suspended", async () => {
  await using world = await openWorkspaceWithDaemon();
  const { clients, path, idOf, organization_id, readToken, fetchStatusWith } = world;
  const admin = clients["site owner"];
  const { id: group } = await admin.post<{ id: string }>(`/api/v2/organizations/${organization_id}/groups`, {
    name: "helpers",
  });
  await admin.patch(`/api/v2/groups/${group}`, { add_users: [idOf("bob")] });
  await clients.owner.patch(`${path}/acl`, { group_roles: { [group]: "use" } });
  const bobsToken = await readToken(clients.member);
  await admin.patch(`/api/v2/groups/${group}`, { remove_users: [idOf("bob")] });
  await until(async () => (await fetchStatusWith(bobsToken)) === 401);
  await until(async () => (await fetchStatusWith(await readToken(clients["shared use"]))) === 200);
  const umasToken = await readToken(clients["shared use"]);
  await admin.put(`/api/v2/users/${idOf("uma")}/status/suspend`);
  await until(async () => (await fetchStatusWith(umasToken)) === 401);
  await until(async () => (await fetchStatusWith(await readToken(clients["shared admin"]))) === 200);
  const amysToken = await readToken(clients["shared admin"]);
  await admin.delete(`/api/v2/organizations/${organization_id}/members/${idOf("amy")}`);
  await until(async () => (await fetchStatusWith(amysToken)) === 401);
});

test("[AG-28] a copied token becomes invalid when an application with terminal access loses its grant, or an owner the role", async () => {
  await using world = await openWorkspaceWithDaemon();
  const { clients, idOf, server, readToken, fetchStatusWith } = world;
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
  const copiedToken = await readToken(clients.owner);
  await clients.owner.delete("/api/v2/users/me/oauth2-grants/reads00000");
  await clients.owner.delete("/api/v2/users/me/oauth2-grants/enters0000");
  await until(async () => (await fetchStatusWith(copiedToken)) === 401);
  await until(async () => (await fetchStatusWith(await readToken(clients.owner))) === 200);
  // Only the grant of the second application allowed access to terminals, so the token changed once.
  const agents = await getContext(server).store.all({
    sql: "select token_generation from agents where name = 'dev'",
    params: [],
    map: ([generation]) => Number(generation),
  });
  expect(agents).toEqual([1]);
  const admin = clients["site owner"];
  await admin.put(`/api/v2/users/${idOf("bob")}/roles`, { roles: ["owner"] });
  const bobsToken = await readToken(clients.member);
  await admin.put(`/api/v2/users/${idOf("bob")}/roles`, { roles: [] });
  await until(async () => (await fetchStatusWith(bobsToken)) === 401);
});

test("[AG-28] a copied token becomes invalid when a key with terminal access is deleted, but not when a person signs out", async () => {
  await using world = await openWorkspaceWithDaemon();
  const { clients, server, readToken, fetchStatusWith } = world;
  const ada = clients.owner;
  const createToken = async (scopes: string[]): Promise<string> =>
    (await ada.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes })).key.split("-")[0] as string;
  const [readKey, sshKey] = [await createToken(["workspace:read"]), await createToken(["workspace:ssh"])];
  const copiedToken = await readToken(ada);
  await ada.delete(`/api/v2/users/me/keys/${readKey}`);
  const sessionKey = await ada.post<{ key: string }>("/api/v2/users/me/keys");
  await new Client(server.url, sessionKey.key).post("/api/v2/users/logout");
  await ada.delete(`/api/v2/users/me/keys/${sshKey}`);
  await until(async () => (await fetchStatusWith(copiedToken)) === 401);
  await until(async () => (await fetchStatusWith(await readToken(ada))) === 200);
  const agents = await getContext(server).store.all({
    sql: "select token_generation from agents where name = 'dev'",
    params: [],
    map: ([generation]) => Number(generation),
  });
  expect(agents).toEqual([1]);
});

test("[AG-28] a daemon that is not connected when a guest loses access gets the new token when it connects", async () => {
  await using world = await openWorkspaceWithDaemon();
  const { clients, path, readToken, fetchStatusWith, stopDaemon, startDaemon } = world;
  const copiedToken = await readToken(clients["shared use"]);
  const { users, groups } = await clients.owner.get<WorkspaceAcl>(`${path}/acl`);
  const revokeAll = (ids: readonly { id: string }[]) => Object.fromEntries(ids.map(({ id }) => [id, ""]));
  await stopDaemon();
  await clients.owner.patch(`${path}/acl`, { user_roles: revokeAll(users), group_roles: revokeAll(groups) });
  await startDaemon();
  await until(async () => (await fetchStatusWith(copiedToken)) === 401);
  await until(async () => (await fetchStatusWith(await readToken(clients.owner))) === 200);
});

test("[AG-29] a daemon that started while the workspace was shared gets no new token, because a guest may have started it", async () => {
  await using world = await openWorkspaceWithDaemon();
  const { clients, path, idOf, readToken, fetchStatusWith, stopDaemon, startDaemon } = world;
  const copiedToken = await readToken(clients["shared use"]);
  await stopDaemon();
  await startDaemon();
  expect(await readToken(clients["shared use"])).toBe(copiedToken);
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  await until(async () => (await fetchStatusWith(copiedToken)) === 401);
  const { notifications } = await clients.owner.get<{ notifications: { title: string }[] }>(
    "/api/v2/notifications/inbox",
  );
  expect(notifications[0]?.title).toContain("Restart");
  const { status } = await clients.owner.get<{ status: string }>(world.agentPath("").replace(/\/$/, "") as "/api/v2");
  expect(status).not.toBe("connected");
});

const makeSubAgent = async ({ agent }: RpcAgent, name: string) => {
  const request = { name, directory: "/", architecture: "amd64", operatingSystem: "linux" };
  const { agent: created } = await agent.createSubAgent(request);
  if (!created) throw new Error("no agent was created");
  return { agent_id: uuidFromBytes(created.id), agent_token: uuidFromBytes(created.authToken) };
};

test("[AG-28] when a guest loses access, sub-agents that are not connected, or whose parent is not, are deleted", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, idOf, server, token } = shared;
  const fetchStatusWith = async (copiedToken: string): Promise<number> =>
    (await clients.guest.withToken(copiedToken).fetch("GET", "/api/v2/workspaceagents/me/gitsshkey")).status;
  const parent = await connectAgent(server, token);
  const [idleAgent, usedAgent] = [await makeSubAgent(parent, "idle"), await makeSubAgent(parent, "used")];
  using home = tempDirectory();
  await using _daemon = await startAgentProcess(server, usedAgent, home.path);
  const listNames = async () => (await parent.agent.listSubAgents({})).agents.map(({ name }) => name);
  // With a lower role, the guest still has access.
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("amy")]: "use" } });
  expect(await listNames()).toEqual(["idle", "used"]);
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  expect([await fetchStatusWith(idleAgent.agent_token), await listNames()]).toEqual([401, ["used"]]);
  await makeSubAgent(parent, "idle");
  expect(await listNames()).toEqual(["idle", "used"]);
  await parent[Symbol.asyncDispose]();
  const { owner } = clients;
  const loadAgent = () =>
    owner.get<{ status: string }>(
      `/api/v2/workspaceagents/${shared.workspace.latest_build.resources[0]?.agents[0]?.id}`,
    );
  await until(async () => (await loadAgent()).status === "disconnected");
  await owner.patch(`${path}/acl`, { user_roles: { [idOf("amy")]: "" } });
  await until(async () => (await fetchStatusWith(usedAgent.agent_token)) === 401);
  await using newConnection = await connectAgent(server, token);
  expect((await newConnection.agent.listSubAgents({})).agents).toEqual([]);
});

test("[AG-28] a connected sub-agent that a guest created gets no new token and is deleted", async () => {
  await using world = await openWorkspaceWithDaemon();
  const { clients, path, idOf, server, workspace, agentPath, readToken, fetchStatusWith } = world;
  const copiedToken = await readToken(clients["shared use"]);
  // A guest can create a sub-agent while the daemon is paused.
  const [agent_id, agent_token] = [uuid(), uuid()];
  const properties = { directory: "/", architecture: "amd64", operating_system: "linux", display_apps: [], apps: [] };
  const guestAgent = Object.assign({ id: agent_id, token_hash: sha256(agent_token), name: "theirs" }, properties);
  const parent_id = workspace.latest_build.resources[0]?.agents[0]?.id ?? "";
  await getContext(server).agents.ask(parent_id, "createSubAgent", guestAgent);
  const subAgent = { agent_id, agent_token };
  using home = tempDirectory();
  await using _guestDaemon = await startAgentProcess(server, subAgent, home.path);
  expect(await fetchStatusWith(subAgent.agent_token)).toBe(200);
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  await until(async () => (await fetchStatusWith(copiedToken)) === 401);
  await until(async () => (await fetchStatusWith(subAgent.agent_token)) === 401);
  const response = await clients.owner.fetch(
    "GET",
    agentPath("").replace(/[^/]+\/$/, subAgent.agent_id) as `/${string}`,
  );
  expect(response.status).toBe(404);
});

test("[AG-29] when a guest loses access, the sub-agents of a daemon that they started are deleted", async () => {
  await using world = await openWorkspaceWithDaemon();
  const { clients, path, idOf, server, readToken, fetchStatusWith, stopDaemon, startDaemon } = world;
  const copiedToken = await readToken(clients["shared use"]);
  await stopDaemon();
  const guestConnection = await connectAgent(server, copiedToken);
  const subAgent = await makeSubAgent(guestConnection, "theirs");
  await using childConnection = await connectAgent(server, subAgent.agent_token);
  await childConnection.agent.getServiceBanner({});
  await guestConnection[Symbol.asyncDispose]();
  await startDaemon();
  await expect(connectAgent(server, copiedToken)).rejects.toThrow();
  expect(await fetchStatusWith(subAgent.agent_token)).toBe(200);
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  expect((await childConnection.closed).code).toBe(1001);
  expect(await fetchStatusWith(subAgent.agent_token)).toBe(401);
});

test("[AG-29] while the daemon is connected, a copied token cannot connect; after an attempt, the owner is asked to restart", async () => {
  await using world = await openWorkspaceWithDaemon();
  const { clients, path, idOf, server, agentPath, readToken, fetchStatusWith } = world;
  const copiedToken = await readToken(clients["shared use"]);
  await expect(connectAgent(server, copiedToken)).rejects.toThrow();
  using home = tempDirectory();
  const secondDaemon = Bun.spawn([...toProgramCommand(), "agent"], {
    env: {
      PATH: process.env.PATH ?? "",
      HOME: home.path,
      SLIPWAY_AGENT_TOKEN: copiedToken,
      SLIPWAY_AGENT_URL: server.url.href,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const reader = secondDaemon.stderr.getReader();
  let message = "";
  while (!message.includes("not connected")) message += new TextDecoder().decode((await reader.read()).value);
  // The owner's terminals still run in the original daemon.
  using ownerTerminal = await TestTerminal.open({ owner: clients.owner, path: agentPath }, { command: "pwd; cat" });
  expect(await ownerTerminal.until(/\//)).not.toContain(home.path);
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  await until(async () => (await fetchStatusWith(copiedToken)) === 401);
  const { notifications } = await clients.owner.get<{ notifications: { title: string }[] }>(
    "/api/v2/notifications/inbox",
  );
  expect(notifications.map(({ title }) => title)).toEqual(["Restart dev"]);
  secondDaemon.kill("SIGKILL");
  await secondDaemon.exited;
});
