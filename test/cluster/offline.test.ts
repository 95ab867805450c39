// Cluster accounts, managed from a node's machine.
import { expect } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { ClusterNode } from "#db/pg/node.ts";
import { runVerb } from "#test/cli/run-verb.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { tempDirectory } from "#test/support/server.ts";

testNeeding(
  [needs.postgres],
  "[CL-15] offline creates and recovers accounts while no node is active, and is refused while one is",
  async () => {
    const database = await createDatabase({ empty: true });
    using temp = tempDirectory();
    const offline = (...args: string[]) => {
      const key = ["--encryption-key", "5".repeat(64)];
      return runVerb(["offline", ...args, "--data-dir", temp.path, "--database-url", database.url, ...key]);
    };
    const listUsers = async () =>
      JSON.parse((await offline("users", "list", "--json")).printed) as { username: string }[];
    try {
      expect((await offline("users", "list")).errors).toContain("this database is empty");
      const created = await offline("setup", "ada", "--email", "ada@example.com");
      expect([created.code, created.errors]).toEqual([0, ""]);
      expect((await offline("users", "create", "ben", "--email", "ben@example.com")).code).toBe(0);
      expect((await listUsers()).map(({ username }) => username)).toEqual(["ada", "ben"]);
      const [url, id, version] = [database.url, "10.0.0.1:7080", "v9.9.9"];
      const node = await ClusterNode.join({
        url,
        id,
        version,
        lease_ms: 30_000,
        clock: systemClock,
        fatal: () => {},
      });
      try {
        await node.whenActive();
        const refused = await offline("users", "suspend", "ben");
        expect([refused.code, refused.printed]).toEqual([1, ""]);
        expect(refused.errors).toContain("node 10.0.0.1:7080 is active; stop every node first");
      } finally {
        await node.leaveCluster();
      }
      expect(await listUsers()).toMatchObject([{ status: "active" }, { status: "active" }]);
    } finally {
      await database.remove();
    }
  },
);
