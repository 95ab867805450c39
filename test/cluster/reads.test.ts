// Two nodes that both answer reads, as separate processes: writes through one are visible through the other immediately, and reads continue
// while the active node is paused.
import { expect } from "bun:test";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { connectAgent } from "#test/api/agents/rpc-agent.ts";
import { createChat, Follower } from "#test/support/chats.ts";
import { type NodeProcess, startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { ECHO, makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { coordinate } from "#test/tailnet/peers.ts";

// A lease longer than the reads while the active node is paused, even on a busy machine.
const ALL_READ = { env: { SLIPWAY_CLUSTER_READS: "every", SLIPWAY_CLUSTER_LEASE: "8s" } };

type WorkspaceList = { readonly workspaces: readonly { readonly name: string }[] };

const clientAt = (node: NodeProcess, client: Client): Client => new Client(node.url, client.token);
const fetchStatus = async (client: Client, path: string): Promise<number> => (await client.fetch("GET", path)).status;

testNeeding(
  [needs.postgres],
  "[CL-20] [CL-21] [CL-22] a spare's reads are current and continue without an active node; reads of that node's own data are forwarded",
  async () => {
    await using cluster = await startCluster();
    const activeNode = await cluster.start(1, ALL_READ);
    const spareNode = await cluster.start(2, ALL_READ);
    const spareClient = await new Client(spareNode.url).signIn(ADMIN.email, ADMIN.password);
    const activeClient = clientAt(activeNode, spareClient);
    const { organization_ids } = await spareClient.get<{ organization_ids: string[] }>("/api/v2/users/me");

    // Writes acknowledged by one node are visible on the other, from its first response on.
    const template = await makeTemplate(activeClient);
    for (const name of ["first", "second", "third"]) {
      const { id } = await activeClient.post<{ id: string }>("/api/v2/users/me/workspaces", {
        name,
        template_id: template.id,
      });
      expect((await spareClient.get<{ name: string }>(`/api/v2/workspaces/${id}`)).name).toBe(name);
    }
    const areBuildsDone = async (): Promise<boolean> => {
      const { workspaces } = await spareClient.get<{
        workspaces: { latest_build: { job: { status: string } } }[];
      }>("/api/v2/workspaces");
      return workspaces.every(({ latest_build }) => latest_build.job.status === "succeeded");
    };
    await until(areBuildsDone);
    for (let i = 0; i < 5; i++) {
      const { key } = await activeClient.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
      const token = new Client(spareNode.url, key);
      expect(await fetchStatus(token, "/api/v2/users/me")).toBe(200);
      await activeClient.delete(`/api/v2/users/me/keys/${key.slice(0, 10)}`);
      expect(await fetchStatus(token, "/api/v2/users/me")).toBe(401);
    }
    // Streams, and data in the active node's memory.
    const chat = await createChat({ owner: spareClient, organization_id: organization_ids[0] as string }, "hello");
    using follower = await Follower.open(spareClient, chat.id);
    await follower.until(({ history }) => history.some((line) => line.startsWith("assistant: ")));

    // An agent connected through the spare.
    const token = crypto.randomUUID();
    const agentTemplate = await makeTemplate(spareClient, `${ECHO}        token: ${token}\n`);
    const { id } = await spareClient.post<{ id: string }>("/api/v2/users/me/workspaces", {
      name: "with-agent",
      template_id: agentTemplate.id,
    });
    await until(areBuildsDone);
    await using agent = await connectAgent(spareNode, token);
    const stream = await coordinate(agent.tailnet);
    await stream.send({ updateSelf: { node: { preferredDerp: 999, derpLatency: { "999-v4": 0.25 } } } });
    const getShownAgent = async () =>
      (await spareClient.get<Workspace>(`/api/v2/workspaces/${id}`)).latest_build.resources[0]?.agents[0];
    await until(async () => (await getShownAgent())?.latency["Coder Embedded Relay"]?.latency_ms === 250);

    activeNode.signal("SIGSTOP");
    expect(await fetchStatus(spareClient, "/api/v2/users/me")).toBe(200);
    const { name, status, latency } = (await getShownAgent()) ?? {};
    expect([name, status, latency]).toEqual([
      "main",
      "connected",
      { "Coder Embedded Relay": { latency_ms: 250, preferred: true } },
    ]);
    const { workspaces } = await spareClient.get<WorkspaceList>("/api/v2/workspaces");
    expect(workspaces.map(({ name }) => name)).toEqual(["first", "second", "third", "with-agent"]);
    expect(await fetchStatus(spareClient, `/api/v2/templates/${template.id}`)).toBe(200);
    expect(await fetchStatus(new Client(spareNode.url, "invalid-token"), "/api/v2/users/me")).toBe(401);
    // The spare itself answered all of this.
    expect(spareNode.output()).not.toContain("is listening on");
    // A write needs the next active node, which is the spare; requests forwarded to the previous one break off.
    await until(async () => {
      const created = await spareClient.fetch("POST", "/api/v2/users/me/keys/tokens", {}).catch(() => undefined);
      return created?.status === 201;
    });
    expect(spareNode.output()).toContain("is active, epoch ");
    expect(await fetchStatus(spareClient, "/api/v2/users/me")).toBe(200);
  },
);
