// A paused node: requests forwarded to it are not held until it resumes.
import { expect } from "bun:test";
import { SQL } from "bun";
import { Client } from "#src/client.ts";
import { createChat } from "#test/support/chats.ts";
import { type NodeProcess, startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

/** Longer than usual: on a busy machine, a node that did not renew its lease in time would end, and reset the requests of this test. */
const LEASE_MS = 8_000;
const ALL_ACTIVE = { env: { SLIPWAY_CLUSTER_ACTIVE: "every", SLIPWAY_CLUSTER_LEASE: `${LEASE_MS}ms` } };
/** Maximum delay after the end of the lease, on a busy machine. */
const MAX_DELAY_MS = 4_000;

testNeeding(
  [needs.postgres],
  "[CL-62] a paused node delays forwarded requests for little longer than its lease",
  async () => {
    await using cluster = await startCluster();
    const nodes = [
      await cluster.start(1, ALL_ACTIVE),
      await cluster.start(2, ALL_ACTIVE),
      await cluster.start(3, ALL_ACTIVE),
    ];
    await using sql = new SQL(cluster.database.url, { max: 1 });
    await until(
      async () => (await sql.unsafe("select node from parts group by node having count(*) > 80")).length === 3,
      { what: "each node to have its share" },
    );
    const admin = await new Client((nodes[0] as NodeProcess).url).signIn(ADMIN.email, ADMIN.password);
    const { organization_ids } = await admin.get<{ organization_ids: string[] }>("/api/v2/users/me");
    const chat = await createChat({ owner: admin, organization_id: organization_ids[0] as string }, "hello");
    const [{ node: owner }] = await sql.unsafe("select node from chats join parts using (part) limit 1");
    const pausedNode = nodes.find(({ id }) => id === owner) as NodeProcess;
    const otherNode = nodes.find(({ id }) => id !== owner) as NodeProcess;
    const client = new Client(otherNode.url, admin.token);
    const path = `/api/v2/chats/${chat.id}`;

    const stream = await client.fetch("GET", `${path}/stream`, undefined, { headers: { accept: "text/event-stream" } });
    expect(stream.status).toBe(200);
    const streamEnded = stream.text().catch(() => "broken off");
    using watch = await client.socket("/api/v2/chats/watch");

    pausedNode.signal("SIGSTOP");
    const pausedAt = performance.now();
    const read = client.fetch("GET", path);
    const write = client.fetch("PATCH", path, { title: "renamed" });
    await Promise.all([streamEnded, watch.closed]);
    expect((await write).status).toBe(500);
    expect(await (await write).text()).toContain("may or may not have taken effect");
    expect((await read).status).toBe(200);
    const tookMs = performance.now() - pausedAt;
    expect(tookMs).toBeLessThan(LEASE_MS + MAX_DELAY_MS);
    // Clients reconnect, and reach the next node.
    using reconnected = await client.socket("/api/v2/chats/watch");
    expect((await client.fetch("PATCH", path, { title: "once more" })).ok).toBe(true);
    pausedNode.signal("SIGCONT");
    expect(await pausedNode.exited).not.toBe(0);
    reconnected.close();
  },
);
