// The short form of the torture test with active nodes.
import { afterEach, beforeEach, expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { tortureCluster } from "../crash/cluster/server-cluster.ts";

const { SLIPWAY_TEST_CLUSTER_ACTIVE: before } = process.env;
beforeEach(() => {
  process.env.SLIPWAY_TEST_CLUSTER_ACTIVE = "every";
});
afterEach(() => {
  if (before === undefined) delete process.env.SLIPWAY_TEST_CLUSTER_ACTIVE;
  else process.env.SLIPWAY_TEST_CLUSTER_ACTIVE = before;
});

testNeeding(
  [needs.postgres],
  "[CP-7] [CP-3] when one of three active nodes is killed under load, nothing acknowledged is lost, and no line or job is duplicated",
  async () => {
    const { problems, acknowledged, parts } = await tortureCluster(["kill"], 8);
    expect(problems).toEqual([]);
    expect(acknowledged).toBeGreaterThan(10);
    expect(Math.min(parts?.lines ?? 0, parts?.builds ?? 0)).toBeGreaterThan(10);
  },
  scaleTimeout(240_000),
);
