// Sub-agents over the agent protocol: how they are created, shown, connected, deleted, and ended with their parents.
import { describe, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { uuidFromBytes, uuidToBytes } from "#base/ids.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { type SeededAgent, seedAgent, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";
import { connectAgent, type RpcAgent } from "./rpc-agent.ts";

const server = await forFile(startTestServer({ clock: systemClock }));

const CHILD = { name: "devcontainer", directory: "/workspaces/app", architecture: "amd64", operatingSystem: "linux" };

const createChild = async (
  agent: RpcAgent["agent"],
  request: Parameters<RpcAgent["agent"]["createSubAgent"]>[0] = CHILD,
) => {
  const { agent: created, appCreationErrors } = await agent.createSubAgent(request);
  if (!created) throw new Error("the response has no agent");
  return {
    id: uuidFromBytes(created.id),
    token: uuidFromBytes(created.authToken),
    name: created.name,
    appCreationErrors,
  };
};
const loadAgent = (seeded: SeededAgent, id: string) =>
  new Client(server.url, seeded.owner_token).get<WorkspaceAgent>(`/api/v2/workspaceagents/${id}`);
const getErrorMessage = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "done",
    (error: Error) => error.message,
  );
const fetchKeyStatus = async (token: string): Promise<number> =>
  (await new Client(server.url, token).fetch("GET", "/api/v2/workspaceagents/me/gitsshkey")).status;

describe("a child agent", () => {
  test("[SA-1] has its own token and apps, and shows its parent", async () => {
    const seeded = await seedAgent(server);
    await using parent = await connectAgent(server, seeded.agent_token);
    const apps = [
      {
        slug: "web",
        url: "http://localhost:3000",
        share: 2,
        openIn: 1,
        healthcheck: { url: "http://localhost:3000/up", interval: 5, threshold: 3 },
      },
    ];
    const child = await createChild(parent.agent, { ...CHILD, apps, displayApps: [0, 2, 2] });
    expect(child).toMatchObject({ name: "devcontainer", appCreationErrors: [] });
    expect(await loadAgent(seeded, child.id)).toMatchObject({
      name: "devcontainer",
      status: "connecting",
      parent_id: { uuid: seeded.agent_id, valid: true },
      resource_id: seeded.resource_id,
      directory: "/workspaces/app",
      display_apps: ["vscode", "web_terminal"],
      apps: [
        {
          slug: "web",
          display_name: "web",
          sharing_level: "public",
          open_in: "tab",
          health: "initializing",
          healthcheck: { interval: 5 },
        },
      ],
    });
    await using childConnection = await connectAgent(server, child.token);
    const manifest = await childConnection.agent.getManifest({});
    expect(uuidFromBytes(manifest.parentId as Uint8Array)).toBe(seeded.agent_id);
    expect(manifest.directory).toBe("/workspaces/app");
    await childConnection.agent.updateLifecycle({ lifecycle: { state: 5 } });
    expect(await loadAgent(seeded, child.id)).toMatchObject({ status: "connected", lifecycle_state: "ready" });
    const { agents } = await parent.agent.listSubAgents({});
    expect(agents.map(({ id, name, authToken }) => [uuidFromBytes(id), name, authToken.length])).toEqual([
      [child.id, "devcontainer", 16],
    ]);
  });

  test("[SA-2] requires a valid, unused name and a parent that is not a child; errors name invalid apps", async () => {
    const seeded = await seedAgent(server);
    await using parent = await connectAgent(server, seeded.agent_token);
    const { agent } = parent;
    for (const name of ["", "two words", "-x", "x".repeat(65)]) {
      expect([name, await getErrorMessage(agent.createSubAgent({ ...CHILD, name }))]).toEqual([
        name,
        expect.stringMatching(/valid/i),
      ]);
    }
    expect(await getErrorMessage(agent.createSubAgent({ ...CHILD, name: "MAIN" }))).toMatch(/already/);
    const apps = [{ slug: "ok" }, { slug: "Not Ok" }, { slug: "ok" }];
    const longApps = Array.from({ length: 9 }, (_, i) => ({ slug: `long-${i}`, command: "x".repeat(4096) }));
    expect(await getErrorMessage(createChild(agent, { ...CHILD, apps: longApps }))).toBe("Validation failed.");
    const child = await createChild(agent, { ...CHILD, apps });
    expect(child.appCreationErrors.map(({ index, field }) => [index, field])).toEqual([
      [1, "slug"],
      [2, "slug"],
    ]);
    expect((await loadAgent(seeded, child.id)).apps.map(({ slug }) => slug)).toEqual(["ok"]);
    expect(await getErrorMessage(agent.createSubAgent(CHILD))).toMatch(/already/);
    await using childConnection = await connectAgent(server, child.token);
    expect(await getErrorMessage(childConnection.agent.createSubAgent({ ...CHILD, name: "deeper" }))).toMatch(
      /sub-agents of its own/,
    );
  });

  test("[SA-3] can be deleted only by its parent, which revokes its token and closes its connection", async () => {
    const [seeded, otherAgent] = [await seedAgent(server), await seedAgent(server)];
    await using parent = await connectAgent(server, seeded.agent_token);
    await using otherConnection = await connectAgent(server, otherAgent.agent_token);
    const child = await createChild(parent.agent);
    const childConnection = await connectAgent(server, child.token);
    await childConnection.agent.getServiceBanner({});
    await new Client(server.url, child.token).patch("/api/v2/workspaceagents/me/logs", {
      logs: [{ created_at: "2030-01-01T00:00:00Z", level: "info", output: "hello" }],
    });
    expect(await fetchKeyStatus(child.token)).toBe(200);
    for (const agent of [otherConnection.agent, childConnection.agent]) {
      expect(await getErrorMessage(agent.deleteSubAgent({ id: uuidToBytes(child.id) }))).toMatch(/not found/);
      expect((await agent.listSubAgents({})).agents).toEqual([]);
    }
    expect(await getErrorMessage(parent.agent.deleteSubAgent({ id: uuidToBytes(seeded.agent_id) }))).toMatch(
      /not found/,
    );
    expect(await getErrorMessage(parent.agent.deleteSubAgent({ id: new Uint8Array(3) }))).toMatch(/valid/i);
    await parent.agent.deleteSubAgent({ id: uuidToBytes(child.id) });
    expect(await childConnection.closed).toMatchObject({ code: 1001 });
    expect(await fetchKeyStatus(child.token)).toBe(401);
    expect(await getErrorMessage(loadAgent(seeded, child.id))).toMatch(/not found/);
    expect((await parent.agent.listSubAgents({})).agents).toEqual([]);
    expect((await createChild(parent.agent)).id).not.toBe(child.id);
  });

  test("[SA-5] cannot be created or deleted by a passive connection", async () => {
    const seeded = await seedAgent(server);
    await using parent = await connectAgent(server, seeded.agent_token);
    await using passive = await connectAgent(server, seeded.agent_token, "?version=2.10&role=shipper");
    const child = await createChild(parent.agent);
    expect(await getErrorMessage(passive.agent.createSubAgent({ ...CHILD, name: "other" }))).toMatch(/Forbidden/);
    expect(await getErrorMessage(passive.agent.deleteSubAgent({ id: uuidToBytes(child.id) }))).toMatch(/Forbidden/);
    for (const { agent } of [parent, passive]) {
      expect((await agent.listSubAgents({})).agents.map(({ name }) => name)).toEqual(["devcontainer"]);
    }
  });

  test("[SA-4] is disconnected with its parent when a newer build replaces it", async () => {
    const seeded = await seedAgent(server);
    const parent = await connectAgent(server, seeded.agent_token);
    const child = await createChild(parent.agent);
    const childConnection = await connectAgent(server, child.token);
    await childConnection.agent.getServiceBanner({});
    await supersedeAgent(server, seeded);
    expect(await childConnection.closed).toMatchObject({ code: 1001 });
    expect(await parent.closed).toMatchObject({ code: 1001 });
    expect(await fetchKeyStatus(child.token)).toBe(401);
  });
});
