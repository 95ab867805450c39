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
    const firstNode = await cluster.start(1, { env: ALL_ACTIVE });
    const unreachableAddress = `127.0.0.1:${findFreePort()}`;
    await cluster.start(2, { env: { ...ALL_ACTIVE, SLIPWAY_NODE_ADDRESS: unreachableAddress } });
    const thirdNode = await cluster.start(3, { env: ALL_ACTIVE });
    await using sql = new SQL(cluster.database.url, { max: 1 });
    const countShardsPerNode = async () =>
      Object.fromEntries(
        (await sql.unsafe("select node, count(*)::int as count from parts group by node")).map(
          ({ node, count }: { node: string; count: number }) => [node, count],
        ),
      );
    const warning = `node ${unreachableAddress} gets no parts: no node answers at its address ${unreachableAddress}`;
    await until(() => firstNode.output().includes(warning), { what: "the node to be missed" });
    await until(async () => (await countShardsPerNode())[thirdNode.id] > 80, {
      what: "the third node to have its share",
    });
    expect(Object.keys(await countShardsPerNode()).sort()).toEqual([firstNode.id, thirdNode.id].sort());
    expect(firstNode.output().split(warning).length).toBe(2);
  },
);
