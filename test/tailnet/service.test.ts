// The relay map in each response that contains it, and the updates about a user's workspaces.
import { expect, test } from "bun:test";
import { uuid, uuidFromBytes, uuidToBytes } from "#base/ids.ts";
import { findWorkspace, insertWorkspace, updateWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { Client } from "#src/client.ts";
import { buildDerpMap, buildDerpMapJson } from "#src/tailnet/derp-map.ts";
import type { WorkspaceUpdate } from "#src/wire/gen/tailnet_pb.ts";
import { Workspace_Status as Status } from "#src/wire/tailnet-api.ts";
import { connectAgent } from "#test/api/agents/rpc-agent.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { getContext, seedAgent, seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { connectTailnet } from "./peers.ts";

test("[TL-15] relay map and connection info have exactly the specified members and name this server", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const map = {
    homeParams: { regionScore: {} },
    omitDefaultRegions: true,
    regions: {
      999: {
        avoid: false,
        embeddedRelay: true,
        regionCode: "coder",
        regionID: 999,
        regionName: "Coder Embedded Relay",
        nodes: [
          {
            canPort80: false,
            certName: "",
            derpport: Number(server.url.port),
            forceHTTP: true,
            hostName: "127.0.0.1",
            insecureForTests: false,
            ipv4: "",
            ipv6: "",
            name: "999b",
            regionID: 999,
            stunonly: false,
            stunport: -1,
            stuntestIP: "",
          },
        ],
      },
    },
  };
  const info = {
    derp_force_websockets: true,
    derp_map: map,
    disable_direct_connections: true,
    hostname_suffix: "coder",
  };
  expect(await admin.get("/api/v2/workspaceagents/connection")).toEqual(info);
  const url = Object.assign(new URL("/api/v2/derp-map", server.url), { protocol: "ws:" });
  const socket = new WebSocket(url, { headers: { "Service-Session-Token": admin.token } } as never);
  socket.binaryType = "arraybuffer";
  const closed = new Promise<number>((resolve) => {
    socket.onclose = ({ code }) => resolve(code);
  });
  const message = await new Promise<unknown>((resolve) => {
    socket.onmessage = ({ data }) => resolve(data);
  });
  // Clients expect a binary message.
  expect(message).toBeInstanceOf(ArrayBuffer);
  expect(JSON.parse(new TextDecoder().decode(message as ArrayBuffer))).toEqual(map);
  socket.send("more, please");
  expect(await closed).toBe(1002);
});

testInProcess("[TL-15] users who can see an agent get its connection info; agents get the same map", async () => {
  await using server = await startTestServer();
  const seeded = await seedAgent(server);
  const path = `/api/v2/workspaceagents/${seeded.agent_id}/connection`;
  const owner = new Client(server.url, seeded.owner_token);
  expect(await owner.get(path)).toEqual(await owner.get("/api/v2/workspaceagents/connection"));
  const outsider = new Client(server.url, (await seedUser(server)).token);
  expect((await outsider.fetch("GET", path)).status).toBe(404);
  await using agent = await connectAgent(server, seeded.agent_token);
  const maps = agent.tailnet.streamDERPMaps({});
  const { value } = await maps.next();
  const region = value?.regions["999"];
  expect(value?.homeParams).toBeDefined();
  expect(region).toMatchObject({ regionId: 999n, embeddedRelay: true, regionCode: "coder" });
  expect(region?.nodes[0]).toMatchObject({
    name: "999b",
    stunPort: -1,
    derpPort: Number(server.url.port),
    forceHttp: true,
  });
  await maps.return();
  expect((await agent.agent.getManifest({})).derpMap?.regions["999"]?.nodes[0]?.name).toBe("999b");
});

test("[TL-15] behind TLS the relay is on the access URL's port, without forced WebSockets", () => {
  const [nodeJson] = buildDerpMapJson(new URL("https://slip.example.com/")).regions["999"]?.nodes ?? [];
  expect(nodeJson).toMatchObject({ hostName: "slip.example.com", derpport: 443, forceHTTP: false });
  const [ipv6] = buildDerpMapJson(new URL("http://[::1]:7080/")).regions["999"]?.nodes ?? [];
  expect(ipv6).toMatchObject({ hostName: "::1", derpport: 7080, forceHTTP: true });
  expect(buildDerpMap(new URL("https://slip.example.com/")).regions).toMatchObject({
    999: { nodes: [{ hostName: "slip.example.com", derpPort: 443, forceHttp: false }] },
  });
});

testInProcess("[TL-16] a client gets all workspaces of its user first, then only their changes", async () => {
  await using server = await startTestServer();
  const { store, topics, clock } = getContext(server);
  const own = await seedAgent(server);
  const other = await seedAgent(server);
  await using connection = await connectTailnet(server, "/api/v2/tailnet?version=2.3", own.owner_token);
  const updates = connection.tailnet.workspaceUpdates({ workspaceOwnerId: uuidToBytes(own.owner_id) });
  const nextSummary = async () => summarizeUpdate((await updates.next()).value as WorkspaceUpdate);
  const change = async (id: string, set: Parameters<typeof updateWorkspace>[1]) => {
    await store.commit([updateWorkspace(id, set)]);
    topics.publish("workspace", id, { version: 1, latest_build_id: own.build_id });
  };
  expect(await nextSummary()).toEqual({
    workspaces: [[own.workspace_id, "dev", "PENDING"]],
    agents: [[own.agent_id, "main", own.workspace_id]],
    deleted: [],
    deleted_agents: [],
  });
  await change(other.workspace_id, { status: "running" });
  // Nothing visible has changed, so nothing is sent.
  topics.publish("workspace", own.workspace_id, { version: 1, latest_build_id: own.build_id });
  await change(own.workspace_id, { status: "running", name: "renamed" });
  expect(await nextSummary()).toEqual({
    workspaces: [[own.workspace_id, "renamed", "RUNNING"]],
    agents: [],
    deleted: [],
    deleted_agents: [],
  });
  const id = uuid();
  const now = clock.now();
  const first = (await store.get(findWorkspace({ id: own.workspace_id }))) as WorkspaceRow;
  await store.commit([
    insertWorkspace({
      ...first,
      id,
      name: "second",
      latest_build_id: uuid(),
      created_at: now,
      updated_at: now,
    }),
  ]);
  topics.publish("workspace", id, { version: 1, latest_build_id: own.build_id });
  expect((await nextSummary()).workspaces).toEqual([[id, "second", "RUNNING"]]);
  // The next build has no agents.
  await change(own.workspace_id, { status: "stopped", latest_build_id: uuid() });
  expect(await nextSummary()).toEqual({
    workspaces: [[own.workspace_id, "renamed", "STOPPED"]],
    agents: [],
    deleted: [],
    deleted_agents: [own.agent_id],
  });
  await change(id, { deleted: true });
  expect((await nextSummary()).deleted).toEqual([id]);
  await updates.return();
});

testInProcess("[TL-16] a user may follow only their own workspaces, and only over a user's connection", async () => {
  await using server = await startTestServer();
  const seeded = await seedAgent(server);
  const outsider = await seedUser(server);
  const tryFollowing = async (tailnet: Awaited<ReturnType<typeof connectTailnet>>["tailnet"], owner: Uint8Array) => {
    try {
      await tailnet.workspaceUpdates({ workspaceOwnerId: owner }).next();
      return "accepted";
    } catch (error) {
      return (error as Error).message;
    }
  };
  const owner = uuidToBytes(seeded.owner_id);
  await using userConnection = await connectTailnet(server, "/api/v2/tailnet", outsider.token);
  await using agentConnection = await connectTailnet(
    server,
    `/api/v2/workspaceagents/${seeded.agent_id}/coordinate?version=2.0`,
    seeded.owner_token,
  );
  await using agent = await connectAgent(server, seeded.agent_token);
  for (const { tailnet } of [userConnection, agentConnection, agent])
    expect(await tryFollowing(tailnet, owner)).toContain("may not follow");
  expect(await tryFollowing(userConnection.tailnet, new Uint8Array(3))).toContain("may not follow");
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  await using adminConnection = await connectTailnet(server, "/api/v2/tailnet", admin.token as string);
  expect(await tryFollowing(adminConnection.tailnet, owner)).toBe("accepted");
  const second = await seedUser(server, { roles: ["owner"] });
  await using secondConnection = await connectTailnet(server, "/api/v2/tailnet", second.token);
  const updates = secondConnection.tailnet.workspaceUpdates({ workspaceOwnerId: owner });
  expect((await updates.next()).done).toBe(false);
  await admin.put(`/api/v2/users/${second.user_id}/roles`, { roles: [] });
  expect((await updates.next()).done).toBe(true);
});

testInProcess(
  "[TL-16] [ID-28] a key for one workspace follows that one only, and a key without workspace:read none",
  async () => {
    await using server = await startTestServer();
    const { store, topics, clock } = getContext(server);
    const { owner_id, owner_token, agent_id, workspace_id, build_id } = await seedAgent(server);
    const row = (await store.get(findWorkspace({ id: workspace_id }))) as WorkspaceRow;
    const [id, now] = [uuid(), clock.now()];
    await store.commit([
      insertWorkspace({ ...row, id, name: "second", latest_build_id: uuid(), created_at: now, updated_at: now }),
    ]);
    const owner = new Client(server.url, owner_token);
    const { key } = await owner.post<{ key: string }>(`/api/v2/workspaceagents/${agent_id}/keys`);
    await using narrow = await connectTailnet(server, "/api/v2/tailnet", key);
    const updates = narrow.tailnet.workspaceUpdates({ workspaceOwnerId: uuidToBytes(owner_id) });
    const nextSummary = async () => summarizeUpdate((await updates.next()).value as WorkspaceUpdate).workspaces;
    expect(await nextSummary()).toEqual([[workspace_id, "dev", "PENDING"]]);
    await store.commit([
      updateWorkspace(id, { status: "running" }),
      updateWorkspace(workspace_id, { status: "running" }),
    ]);
    topics.publish("workspace", id, { version: 1, latest_build_id: build_id });
    topics.publish("workspace", workspace_id, { version: 1, latest_build_id: build_id });
    expect(await nextSummary()).toEqual([[workspace_id, "dev", "RUNNING"]]);
    await updates.return();

    const scopes = ["workspace:ssh"];
    const token = await owner.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name: "ssh", scopes });
    await using entering = await connectTailnet(server, "/api/v2/tailnet", token.key);
    const refused = entering.tailnet.workspaceUpdates({ workspaceOwnerId: uuidToBytes(owner_id) });
    await expect(refused.next()).rejects.toThrow("scope workspace:read");
  },
);

const summarizeUpdate = ({
  upsertedWorkspaces,
  upsertedAgents,
  deletedWorkspaces,
  deletedAgents,
}: WorkspaceUpdate) => ({
  workspaces: upsertedWorkspaces.map(({ id, name, status }) => [uuidFromBytes(id), name, Status[status]]),
  agents: upsertedAgents.map(({ id, name, workspaceId }) => [uuidFromBytes(id), name, uuidFromBytes(workspaceId)]),
  deleted: deletedWorkspaces.map(({ id }) => uuidFromBytes(id)),
  deleted_agents: deletedAgents.map(({ id }) => uuidFromBytes(id)),
});
