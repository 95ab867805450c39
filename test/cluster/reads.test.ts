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
  "[CL-20] [CL-21] [CL-22] a spare's reads are as new as the database, continue while no node is active, and are forwarded if only the active node has the data",
  async () => {
    await using cluster = await startCluster();
    const one = await cluster.start(1, ALL_READ);
    const two = await cluster.start(2, ALL_READ);
    const onTwo = await new Client(two.url).signIn(ADMIN.email, ADMIN.password);
    const onOne = clientAt(one, onTwo);
    const { organization_ids } = await onTwo.get<{ organization_ids: string[] }>("/api/v2/users/me");

    // Writes acknowledged by one node are visible on the other, from its first response on.
    const template = await makeTemplate(onOne);
    for (const name of ["first", "second", "third"]) {
      const { id } = await onOne.post<{ id: string }>("/api/v2/users/me/workspaces", {
        name,
        template_id: template.id,
      });
      expect((await onTwo.get<{ name: string }>(`/api/v2/workspaces/${id}`)).name).toBe(name);
    }
    const areBuildsDone = async (): Promise<boolean> => {
      const { workspaces } = await onTwo.get<{
        workspaces: { latest_build: { job: { status: string } } }[];
      }>("/api/v2/workspaces");
      return workspaces.every(({ latest_build }) => latest_build.job.status === "succeeded");
    };
    await until(areBuildsDone);
    for (let i = 0; i < 5; i++) {
      const { key } = await onOne.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
      const token = new Client(two.url, key);
      expect(await fetchStatus(token, "/api/v2/users/me")).toBe(200);
      await onOne.delete(`/api/v2/users/me/keys/${key.slice(0, 10)}`);
      expect(await fetchStatus(token, "/api/v2/users/me")).toBe(401);
    }
    // Streams, and data in the active node's memory.
    const chat = await createChat({ owner: onTwo, organization_id: organization_ids[0] as string }, "hello");
    using follower = await Follower.open(onTwo, chat.id);
    await follower.until(({ history }) => history.some((line) => line.startsWith("assistant: ")));

    // An agent connected through the spare.
    const token = crypto.randomUUID();
    const work = await makeTemplate(onTwo, `${ECHO}        token: ${token}\n`);
    const { id } = await onTwo.post<{ id: string }>("/api/v2/users/me/workspaces", {
      name: "worked",
      template_id: work.id,
    });
    await until(areBuildsDone);
    await using agent = await connectAgent(two, token);
    const stream = await coordinate(agent.tailnet);
    await stream.send({ updateSelf: { node: { preferredDerp: 999, derpLatency: { "999-v4": 0.25 } } } });
    const getShownAgent = async () =>
      (await onTwo.get<Workspace>(`/api/v2/workspaces/${id}`)).latest_build.resources[0]?.agents[0];
    await until(async () => (await getShownAgent())?.latency["Coder Embedded Relay"]?.latency_ms === 250);

    one.signal("SIGSTOP");
    expect(await fetchStatus(onTwo, "/api/v2/users/me")).toBe(200);
    const { name, status, latency } = (await getShownAgent()) ?? {};
    expect([name, status, latency]).toEqual([
      "main",
      "connected",
      { "Coder Embedded Relay": { latency_ms: 250, preferred: true } },
    ]);
    const { workspaces } = await onTwo.get<WorkspaceList>("/api/v2/workspaces");
    expect(workspaces.map(({ name }) => name)).toEqual(["first", "second", "third", "worked"]);
    expect(await fetchStatus(onTwo, `/api/v2/templates/${template.id}`)).toBe(200);
    expect(await fetchStatus(new Client(two.url, "invalid-token"), "/api/v2/users/me")).toBe(401);
    // The spare itself answered all of this.
    expect(two.output()).not.toContain("is listening on");
    // A write needs the next active node, which is this one; requests forwarded to the previous one break off.
    await until(async () => {
      const created = await onTwo.fetch("POST", "/api/v2/users/me/keys/tokens", {}).catch(() => undefined);
      return created?.status === 201;
    });
    expect(two.output()).toContain("is active, epoch ");
    expect(await fetchStatus(onTwo, "/api/v2/users/me")).toBe(200);
  },
);
