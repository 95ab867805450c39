// A node whose address does not respond.
import { expect } from "bun:test";
import { SQL } from "bun";
import { startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { findFreePort } from "#test/support/net/free-port.ts";
import { until } from "#test/support/until.ts";

const ALL_ACTIVE = { SLIPWAY_CLUSTER_ACTIVE: "every" };

testNeeding(
  [needs.postgres],
  "[CL-64] a node that the others cannot reach gets no shards, and they log it once",
  async () => {
    await using cluster = await startCluster();
    const one = await cluster.start(1, { env: ALL_ACTIVE });
    const wrong = `127.0.0.1:${findFreePort()}`;
    await cluster.start(2, { env: { ...ALL_ACTIVE, SLIPWAY_NODE_ADDRESS: wrong } });
    const three = await cluster.start(3, { env: ALL_ACTIVE });
    await using sql = new SQL(cluster.database.url, { max: 1 });
    const countShardsPerNode = async () =>
      Object.fromEntries(
        (await sql.unsafe("select node, count(*)::int as count from parts group by node")).map(
          ({ node, count }: { node: string; count: number }) => [node, count],
        ),
      );
    const warning = `node ${wrong} gets no parts: no node answers at its address ${wrong}`;
    await until(() => one.output().includes(warning), { what: "the node to be missed" });
    await until(async () => (await countShardsPerNode())[three.id] > 80, { what: "the third node to have its share" });
    expect(Object.keys(await countShardsPerNode()).sort()).toEqual([one.id, three.id].sort());
    expect(one.output().split(warning).length).toBe(2);
  },
);
