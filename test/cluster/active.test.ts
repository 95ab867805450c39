// Three active processes: each has its shards, any of them may be called, and only the shards of one that dies are taken over.
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
const OWNERS = 12;

type CreatedWorkspace = {
  readonly id: string;
  readonly name: string;
  readonly latest_build: { readonly status: string };
};

testNeeding(
  [needs.postgres],
  "[CL-30] [CL-32] [WO-1] three nodes share the shards; a request to any of them is handled by its owner, a dead node's shards are taken over, and a stopping node hands over",
  async () => {
    await using cluster = await startCluster();
    const one = await cluster.start(1, ALL_ACTIVE);
    const two = await cluster.start(2, ALL_ACTIVE);
    const three = await cluster.start(3, ALL_ACTIVE);
    await using sql = new SQL(cluster.database.url, { max: 1 });
    const countShardsPerNode = async (): Promise<Record<string, number>> =>
      Object.fromEntries(
        (await sql.unsafe("select node, count(*)::int as count from parts group by node order by node")).map(
          ({ node, count }: { node: string; count: number }) => [node, count],
        ),
      );
    const isEven = async (nodes: readonly { id: string }[]): Promise<boolean> => {
      const have = await countShardsPerNode();
      return nodes.every(({ id }) => Math.abs((have[id] ?? 0) - 256 / nodes.length) < 1);
    };
    await until(() => isEven([one, two, three]), { what: "each node to have its share" });

    const state = () => new Client(two.url).get<{ message: string; parts: number }>("/readyz");
    await until(async () => (await state()).parts > 80, { what: "the node to say what it has" });
    expect(await state()).toMatchObject({ message: "Ready.", node: "active", lease: "held", database: "answers" });

    // Owners in many shards, each called at another node.
    const admin = await new Client(one.url).signIn(ADMIN.email, ADMIN.password);
    const { organization_ids } = await admin.get<{ organization_ids: string[] }>("/api/v2/users/me");
    const template = await makeTemplate(admin);
    const nodes = [one, two, three];
    const clientAt = (n: number): Client => new Client((nodes[n % nodes.length] as typeof one).url, admin.token);
    const owners = await Promise.all(
      Array.from({ length: OWNERS }, (_, n) =>
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
    const areAllRunning = async (ask: (n: number) => Client): Promise<boolean> => {
      const seen = await Promise.all(
        created.map(({ id }, n) => ask(n).get<CreatedWorkspace>(`/api/v2/workspaces/${id}`)),
      );
      return seen.every(({ latest_build }) => latest_build.status === "running");
    };
    await until(() => areAllRunning((n) => clientAt(n + 1)), { what: "all builds to have ended well" });

    // A hundred people connect to a stopped workspace, at different nodes: one build.
    const [sleeper] = created as [CreatedWorkspace];
    await clientAt(1).post(`/api/v2/workspaces/${sleeper.id}/builds`, { transition: "stop" });
    const getSleeper = async () => clientAt(2).get<CreatedWorkspace>(`/api/v2/workspaces/${sleeper.id}`);
    await until(async () => (await getSleeper()).latest_build.status === "stopped", { what: "the workspace to stop" });
    const woken = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        clientAt(n).post<{ id: string }>(`/api/v2/workspaces/${sleeper.id}/wake`, {}),
      ),
    );
    expect(new Set(woken.map(({ id }) => id)).size).toBe(1);
    expect(await clientAt(0).get<unknown[]>(`/api/v2/workspaces/${sleeper.id}/builds`)).toHaveLength(3);
    await until(() => areAllRunning(clientAt), { what: "the workspace to run again" });

    const parts = await sql.unsafe("select distinct node from workspaces join parts using (part)");
    expect(parts.length).toBe(3);

    // One dies: the others take over its shards within its lease, with its work.
    two.signal("SIGKILL");
    await two.exited;
    nodes.splice(1, 1);
    await until(() => isEven(nodes), { what: "two nodes to have all parts" });
    const renamed = await Promise.all(
      created.map(({ id }, n) => clientAt(n).fetch("PATCH", `/api/v2/workspaces/${id}`, { name: `renamed${n}` })),
    );
    expect(renamed.map(({ status }) => status)).toEqual(created.map(() => 204));

    // One is stopped properly: clients do not notice.
    const ended = one.exited;
    one.signal("SIGTERM");
    nodes.splice(0, 1);
    const last = await Promise.all(
      created.map(({ id }, n) => clientAt(n).fetch("PATCH", `/api/v2/workspaces/${id}`, { name: `again${n}` })),
    );
    expect(last.map(({ status }) => status)).toEqual(created.map(() => 204));
    expect(await ended).toBe(0);
    const names = await Promise.all(
      created.map(async ({ id }) => (await clientAt(0).get<CreatedWorkspace>(`/api/v2/workspaces/${id}`)).name),
    );
    expect(names).toEqual(created.map((_, n) => `again${n}`));
    expect(await countShardsPerNode()).toEqual({ [three.id]: 256 });
  },
  scaleTimeout(180_000),
);
