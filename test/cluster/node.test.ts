// Nodes of a cluster on a real PostgreSQL: which one holds the lease, for how long, and what happens to a node that was replaced.
import { afterEach, describe, expect } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "#base/clock.ts";
import { CommitError } from "#db/engine/store.ts";
import { ClusterNode } from "#db/pg/node.ts";
import { createHaltingClock } from "#test/support/cluster/halting-clock.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { until } from "#test/support/until.ts";
import { insertSetting, listSettings } from "../db/batches.ts";
import { awaitOutcome } from "../db/contract.ts";

const LEASE_MS = 2000;
const nodes: ClusterNode[] = [];
const databases: TestDatabase[] = [];
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.leaveCluster();
  for (const testDatabase of databases.splice(0)) await testDatabase.remove();
});

const createTestDatabase = async (): Promise<TestDatabase> => {
  const created = await createDatabase();
  databases.push(created);
  return created;
};

const join = async (url: string, id: string, { clock = systemClock, fatal = (_: Error): void => {} } = {}) => {
  const node = await ClusterNode.join({ url, id, version: "1", lease_ms: LEASE_MS, clock, fatal });
  nodes.push(node);
  return node;
};

describe("the lease", () => {
  testNeeding(
    [needs.postgres],
    "[CL-1] belongs to one node until released; the next node gets it immediately",
    async () => {
      const { url } = await createTestDatabase();
      const first = await join(url, "first:1");
      await first.whenActive();
      const second = await join(url, "second:2");
      expect(second.leader?.id).toBe("first:1");
      let isActive = false;
      const activation = second.whenActive().then(() => {
        isActive = true;
      });
      await until(() => second.view?.nodes.length === 2);
      expect([isActive, first.role, second.role]).toEqual([false, "active", "spare"]);
      const leftAt = performance.now();
      await first.leaveCluster();
      await activation;
      expect(performance.now() - leftAt).toBeLessThan(LEASE_MS);
      expect(second.epoch).toBe(first.epoch + 1);
    },
  );

  testNeeding(
    [needs.postgres],
    "[CL-1] [CL-2] [PQ-5] of a paused node expires: the node serves no request, writes nothing, and stops",
    async () => {
      const { url } = await createTestDatabase();
      const clock = createHaltingClock();
      const fatal: Error[] = [];
      const first = await join(url, "first:1", { clock, fatal: (error) => fatal.push(error) });
      await first.whenActive();
      const store = first.openStore();
      await store.commit([insertSetting({ key: "before", value: "" })]);
      const second = await join(url, "second:2");
      expect(first.serves_ms).toBeGreaterThan(0);
      clock.halt();
      const haltedAt = performance.now();
      const activation = second.whenActive().then(() => performance.now() - haltedAt);
      await until(() => first.serves_ms <= 0);
      expect(second.role).toBe("spare");
      // The last renewal may have been immediately before the pause, or due.
      expect(await activation).toBeGreaterThan(LEASE_MS - 1000);
      expect(await awaitOutcome(store.commit([insertSetting({ key: "late", value: "" })]))).toBe("closed");
      const next = second.openStore();
      await next.commit([insertSetting({ key: "after", value: "" })]);
      expect((await next.all(listSettings())).map(({ key }) => key)).toEqual(["after", "before"]);
      clock.resume();
      await until(() => fatal.length === 2);
      expect(fatal.map(({ message }) => message)).toEqual([
        "another node has taken over",
        "another node has taken over",
      ]);
      expect(first.role).toBe("spare");
      await next.close();
    },
  );

  testNeeding(
    [needs.postgres],
    "[CL-2] that lapsed while the database was away is renewed, and the node serves again",
    async () => {
      const created = await createTestDatabase();
      const clock = createHaltingClock();
      const fatal: Error[] = [];
      const node = await join(created.url, "only:1", { clock, fatal: (error) => fatal.push(error) });
      await node.whenActive();
      let lapses = 0;
      node.onLapse(() => {
        lapses++;
      });
      clock.halt();
      await until(() => node.serves_ms <= 0);
      clock.resume();
      await until(() => node.serves_ms > 0);
      expect([lapses, fatal.length, node.role]).toEqual([1, 0, "active"]);
      await created.cutConnections();
      await until(() => node.serves_ms > 0);
    },
  );

  testNeeding([needs.postgres], "[CL-22] is not needed by a spare to read", async () => {
    const { url } = await createTestDatabase();
    const spare = await join(url, "spare:1");
    await until(() => spare.isCurrent);
    const reads = spare.openReads(() => {
      throw new CommitError("closed", "this node only reads");
    });
    expect(await reads.all(listSettings())).toEqual([]);
    expect(await awaitOutcome(reads.commit())).toBe("closed");
    await using sql = new SQL(url, { max: 1 });
    const connection = await sql.reserve();
    await connection.unsafe("begin; lock table nodes in share mode").simple();
    await until(() => !spare.isCurrent);
    // Its queries still reach the database, whose writes hang, as with an old primary.
    expect(await reads.all(listSettings())).toEqual([]);
    await connection.unsafe("commit");
    connection.release();
    await until(() => spare.isCurrent);
    await reads.close();
  });

  testNeeding([needs.postgres], "[CL-1] is claimed by one of many concurrent requests", async () => {
    const { url } = await createTestDatabase();
    const candidates = await Promise.all(["a:1", "b:1", "c:1", "d:1"].map((id) => join(url, id)));
    const winners: string[] = [];
    for (const node of candidates)
      void node.whenActive().then(
        () => winners.push(node.id),
        () => {},
      );
    await until(() => winners.length > 0 && candidates.every(({ view }) => view?.active));
    expect(winners.length).toBe(1);
    expect(candidates.filter(({ role }) => role === "active").map(({ id }) => id)).toEqual(winners);
  });
});
