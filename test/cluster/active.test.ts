// Three active processes, each with its own shards: any of them accepts requests, and only the shards of a dead one move.
import { expect } from "bun:test";
import { SQL } from "bun";
import { Client } from "#src/client.ts";
import { startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";

const ALL_ACTIVE = { env: { SLIPWAY_CLUSTER_ACTIVE: "every", SLIPWAY_ALLOW_WORKSPACE_RENAMES: "true" } };
const OWNER_COUNT = 12;

type CreatedWorkspace = {
  readonly id: string;
  readonly name: string;
  readonly latest_build: { readonly status: string };
};

testNeeding(
  [needs.postgres],
  "[CL-30] [CL-32] [WO-1] three nodes share the shards and answer each other's requests; others take over from a dead or stopping node",
  async () => {
    await using cluster = await startCluster();
    const firstNode = await cluster.start(1, ALL_ACTIVE);
    const secondNode = await cluster.start(2, ALL_ACTIVE);
    const thirdNode = await cluster.start(3, ALL_ACTIVE);
    await using sql = new SQL(cluster.database.url, { max: 1 });
    const countShardsPerNode = async (): Promise<Record<string, number>> =>
      Object.fromEntries(
        (await sql.unsafe("select node, count(*)::int as count from parts group by node order by node")).map(
          ({ node, count }: { node: string; count: number }) => [node, count],
        ),
      );
    const isEven = async (nodes: readonly { id: string }[]): Promise<boolean> => {
      const shardCounts = await countShardsPerNode();
      return nodes.every(({ id }) => Math.abs((shardCounts[id] ?? 0) - 256 / nodes.length) < 1);
    };
    await until(() => isEven([firstNode, secondNode, thirdNode]), { what: "each node to have its share" });

    const fetchReadiness = () => new Client(secondNode.url).get<{ message: string; parts: number }>("/readyz");
    await until(async () => (await fetchReadiness()).parts > 80, { what: "the node to report its shards" });
    expect(await fetchReadiness()).toMatchObject({
      message: "Ready.",
      node: "active",
      lease: "held",
      database: "answers",
    });

    // Owners in many shards; each request for one goes to a different node.
    const admin = await new Client(firstNode.url).signIn(ADMIN.email, ADMIN.password);
    const { organization_ids } = await admin.get<{ organization_ids: string[] }>("/api/v2/users/me");
    const template = await makeTemplate(admin);
    const nodes = [firstNode, secondNode, thirdNode];
    const clientAt = (n: number): Client => new Client((nodes[n % nodes.length] as typeof firstNode).url, admin.token);
    const owners = await Promise.all(
      Array.from({ length: OWNER_COUNT }, (_, n) =>
        admin.post<{ id: string }>("/api/v2/users", {
          email: `owner${n}@example.com`,
          username: `owner${n}`,
          password: "of an owner of workspaces",
          login_type: "password",
          organization_ids,
        }),
      ),
    );
    const created = await Promise.all(
      owners.map(({ id }, n) =>
        clientAt(n).post<CreatedWorkspace>(`/api/v2/users/${id}/workspaces`, {
          name: "work",
          template_id: template.id,
        }),
      ),
    );
    const areAllRunning = async (clientFor: (n: number) => Client): Promise<boolean> => {
      const fetched = await Promise.all(
        created.map(({ id }, n) => clientFor(n).get<CreatedWorkspace>(`/api/v2/workspaces/${id}`)),
      );
      return fetched.every(({ latest_build }) => latest_build.status === "running");
    };
    await until(() => areAllRunning((n) => clientAt(n + 1)), { what: "all builds to succeed" });

    // A hundred people connect to a stopped workspace, at different nodes: one build.
    const [sleeper] = created as [CreatedWorkspace];
    await clientAt(1).post(`/api/v2/workspaces/${sleeper.id}/builds`, { transition: "stop" });
    const getSleeper = async () => clientAt(2).get<CreatedWorkspace>(`/api/v2/workspaces/${sleeper.id}`);
    await until(async () => (await getSleeper()).latest_build.status === "stopped", { what: "the workspace to stop" });
    const builds = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        clientAt(n).post<{ id: string }>(`/api/v2/workspaces/${sleeper.id}/wake`, {}),
      ),
    );
    expect(new Set(builds.map(({ id }) => id)).size).toBe(1);
    expect(await clientAt(0).get<unknown[]>(`/api/v2/workspaces/${sleeper.id}/builds`)).toHaveLength(3);
    await until(() => areAllRunning(clientAt), { what: "the workspace to run again" });

    const owningNodes = await sql.unsafe("select distinct node from workspaces join parts using (part)");
    expect(owningNodes.length).toBe(3);

    // When one node dies, the others take over its shards and their work within its lease.
    secondNode.signal("SIGKILL");
    await secondNode.exited;
    nodes.splice(1, 1);
    await until(() => isEven(nodes), { what: "two nodes to have all shards" });
    const renameResponses = await Promise.all(
      created.map(({ id }, n) => clientAt(n).fetch("PATCH", `/api/v2/workspaces/${id}`, { name: `renamed${n}` })),
    );
    expect(renameResponses.map(({ status }) => status)).toEqual(created.map(() => 204));

    // Clients do not notice an orderly stop.
    const exited = firstNode.exited;
    firstNode.signal("SIGTERM");
    nodes.splice(0, 1);
    const lastResponses = await Promise.all(
      created.map(({ id }, n) => clientAt(n).fetch("PATCH", `/api/v2/workspaces/${id}`, { name: `again${n}` })),
    );
    expect(lastResponses.map(({ status }) => status)).toEqual(created.map(() => 204));
    expect(await exited).toBe(0);
    const names = await Promise.all(
      created.map(async ({ id }) => (await clientAt(0).get<CreatedWorkspace>(`/api/v2/workspaces/${id}`)).name),
    );
    expect(names).toEqual(created.map((_, n) => `again${n}`));
    expect(await countShardsPerNode()).toEqual({ [thirdNode.id]: 256 });
  },
  scaleTimeout(180_000),
);
