// A malformed encryption key.
import { expect } from "bun:test";
import { SQL } from "bun";
import { startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";

testNeeding(
  [needs.postgres],
  "[CL-63] a node with a malformed key exits before it writes to the database",
  async () => {
    await using cluster = await startCluster();
    await using sql = new SQL(cluster.database.url, { max: 1 });
    const countJoined = () =>
      sql.unsafe("select (select count(*)::int from leases) as leases, max(value) as epoch from epoch");
    const before = await countJoined();
    for (const active of ["one", "every"]) {
      const env = { SLIPWAY_ENCRYPTION_KEY: "no key", SLIPWAY_CLUSTER_ACTIVE: active };
      await expect(cluster.start(1, { env })).rejects.toThrow(/64 hexadecimal/);
    }
    expect(await countJoined()).toEqual(before);
  },
);
