// Two active nodes that cache who each API key belongs to: revoking a key, or changing permissions, takes effect on both immediately.
import { expect } from "bun:test";
import { SQL } from "bun";
import { Client } from "#src/client.ts";
import { type NodeProcess, startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";

const ALL_ACTIVE = { env: { SLIPWAY_CLUSTER_ACTIVE: "every" } };
const ROUNDS = 5;

testNeeding(
  [needs.postgres],
  "[CP-72] a revoked key, a removed role and a suspension apply on every active node as soon as they are acknowledged",
  async () => {
    await using cluster = await startCluster();
    const nodes = [await cluster.start(1, ALL_ACTIVE), await cluster.start(2, ALL_ACTIVE)] as const;
    await using sql = new SQL(cluster.database.url, { max: 1 });
    const loadShardCounts = (): Promise<{ count: number }[]> =>
      sql.unsafe("select count(*)::int as count from parts where node <> '' group by node");
    await until(async () =>
      (await loadShardCounts()).every(({ count }, _, { length }) => length === 2 && count === 128),
    );
    const admin = await new Client(nodes[0].url).signIn(ADMIN.email, ADMIN.password);
    const { organization_ids } = await admin.get<{ organization_ids: string[] }>("/api/v2/users/me");
    const template = await makeTemplate(admin);
    const password = "of a rejected user";
    const people = await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        const [username, email] = [`person${n}`, `person${n}@example.com`];
        const account = { email, username, password, login_type: "password", organization_ids };
        const { id } = await admin.post<{ id: string }>("/api/v2/users", account);
        const body = { name: "work", template_id: template.id };
        const workspace = await admin.post<{ id: string }>(`/api/v2/users/${id}/workspaces`, body);
        return { id, email, workspace_id: workspace.id };
      }),
    );
    /** A workspace in each node's shards. */
    const workspaces: { id: string; node: string }[] = await sql.unsafe(
      "select distinct on (node) id, node from workspaces join parts using (part) order by node, id",
    );
    expect(workspaces.length).toBe(2);
    const clientFor = (node: NodeProcess, token: string | undefined): Client => new Client(node.url, token);
    /** Sends a read, and a change of each node's workspace, to every node with this token. Returns the distinct HTTP statuses. */
    const fetchStatuses = async (token: string | undefined): Promise<Set<number>> => {
      const requests = nodes.flatMap((node) => [
        clientFor(node, token).fetch("GET", "/api/v2/users/me"),
        ...workspaces.map(({ id }) =>
          clientFor(node, token).fetch("PUT", `/api/v2/workspaces/${id}/ttl`, { ttl_ms: null }),
        ),
      ]);
      return new Set((await Promise.all(requests)).map(({ status }) => status));
    };
    for (let n = 0; n < ROUNDS; n++) {
      const node = nodes[n % 2] ?? nodes[0];
      const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
      expect([...(await fetchStatuses(key))].sort()).toEqual([200, 204]);
      await clientFor(node, admin.token).delete(`/api/v2/users/me/keys/${key.slice(0, 10)}`);
      expect([...(await fetchStatuses(key))]).toEqual([401]);

      const [person] = people.slice(n) as [(typeof people)[number]];
      const client = await new Client(node.url).signIn(person.email, password);
      const setRoles = (roles: string[]) =>
        clientFor(node, admin.token).put(`/api/v2/users/${person.id}/roles`, { roles });
      await setRoles(["owner"]);
      expect([...(await fetchStatuses(client.token))].sort()).toEqual([200, 204]);
      await setRoles([]);
      const remaining = await fetchStatuses(client.token);
      expect([remaining.has(200), remaining.has(404) || remaining.has(403)]).toEqual([true, true]);
      await clientFor(node, admin.token).put(`/api/v2/users/${person.id}/status/suspend`);
      expect([...(await fetchStatuses(client.token))]).toEqual([401]);
    }
  },
);
