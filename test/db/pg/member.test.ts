// A cluster whose nodes are all active, on a real PostgreSQL: which node has which shards when nodes join, leave, die and return.
import { afterEach, expect } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "#base/clock.ts";
import { SHARD_COUNT } from "#base/shards.ts";
import { UnsafeDatabaseError } from "#db/engine/unsafe.ts";
import { ClusterNode } from "#db/pg/node.ts";
import { ShardsMember } from "#db/pg/shards/member.ts";
import type { ShardsHandler } from "#db/pg/shards/ownership.ts";
import { startCountingProxy } from "#test/bench/size/counting-proxy.ts";
import { createHaltingClock } from "#test/support/cluster/halting-clock.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { until } from "#test/support/until.ts";
import { upsertSetting } from "../batches.ts";
import { awaitOutcome } from "../contract.ts";

const LEASE_MS = 2000;
const ALL_SHARDS = Array.from({ length: SHARD_COUNT }, (_, shard) => shard);
type Leavable = { leaveCluster(): Promise<void> };
const cleanups: Leavable[] = [];
let database: Promise<TestDatabase> | undefined;
afterEach(async () => {
  for (const node of cleanups.splice(0)) await node.leaveCluster();
  await (await database)?.remove();
  database = undefined;
});

type Options = { clock?: typeof systemClock; handler?: Partial<ShardsHandler>; url?: string };

const makeOptions = async (id: string, { clock = systemClock, url: givenUrl }: Options = {}) => {
  database ??= createDatabase();
  const url = givenUrl ?? (await database).url;
  const fatal: string[] = [];
  const options = {
    url,
    id,
    version: "1",
    lease_ms: LEASE_MS,
    clock,
    fatal: (error: Error) => fatal.push(error.message),
  };
  return { options, fatal };
};

/** Joins a node and opens its store. Records the calls of its handler in order. */
const joinNode = async (id: string, overrides: Options = {}) => {
  const { options, fatal } = await makeOptions(id, overrides);
  const member = await ShardsMember.join(options);
  const store = member.openStore();
  const leaveCluster = async (): Promise<void> => {
    await member.rest();
    await store.close();
    await member.leaveCluster();
  };
  cleanups.push({ leaveCluster });
  const requests: ["adopt" | "releaseShards", readonly number[]][] = [];
  const handler = (kind: "adopt" | "releaseShards") => async (shards: readonly number[]) => {
    requests.push([kind, shards]);
    expect(shards.every((shard) => member.has(shard) === (kind === "adopt"))).toBe(true);
    await overrides.handler?.[kind]?.(shards);
  };
  member.onMoves({ adopt: handler("adopt"), releaseShards: handler("releaseShards") });
  const write = (shard?: number) => awaitOutcome(store.commit([upsertSetting({ key: id, value: "" })], { of: shard }));
  const shards = () => ALL_SHARDS.filter((shard) => member.has(shard));
  /** Lists the shards that were adopted or released, in the order of the calls. */
  const listShards = (kind: "adopt" | "releaseShards") =>
    requests.filter(([requestKind]) => requestKind === kind).flatMap(([, shards]) => shards);
  return { id, member, store, fatal, leave: leaveCluster, write, shards, listShards };
};
type Node = Awaited<ReturnType<typeof joinNode>>;

/** Checks that every shard belongs to one node, that shards are evenly distributed, and that each node knows the owners of all shards. */
const isEven = (nodes: readonly Node[]) => (): boolean => {
  const counts = nodes.map(({ member }) => member.count);
  const owners = ALL_SHARDS.map((shard) => nodes.filter(({ member }) => member.has(shard)));
  return (
    Math.max(...counts) - Math.min(...counts) < 2 &&
    owners.every(
      ([owner, ...others], shard) =>
        owner &&
        others.length === 0 &&
        nodes.every((node) => node === owner || node.member.nodeOf(shard)?.id === owner.id),
    )
  );
};

testNeeding(
  [needs.postgres],
  "[CP-7] the first node gets all shards immediately, and shares them evenly with nodes that join later",
  async () => {
    const a = await joinNode("a:1");
    expect([a.member.count, a.member.isFirst, a.listShards("adopt")]).toEqual([SHARD_COUNT, true, ALL_SHARDS]);
    expect(a.member.hasNext).toBe(false);
    const b = await joinNode("b:1");
    await until(isEven([a, b]));
    const c = await joinNode("c:1");
    await until(isEven([a, b, c]));
    // A node's handler adopted each shard as often as the node got it, and released it before each move.
    for (const { listShards, shards } of [a, b, c]) {
      const released = listShards("releaseShards");
      expect(
        listShards("adopt")
          .filter((shard) => !released.includes(shard))
          .sort((x, y) => x - y),
      ).toEqual(shards());
      expect(released.every((shard) => listShards("adopt").includes(shard))).toBe(true);
    }
    expect(c.listShards("releaseShards")).toEqual([]);
    const [shardOfB = 0] = b.shards();
    expect(a.member.nodeOf(shardOfB)).toEqual({ id: "b:1", address: "b:1" });
    expect(b.member.nodeOf(shardOfB)).toBeUndefined();
    // Each node writes for its own shards, and for rows without a shard.
    const outcomes = await Promise.all([
      a.write(shardOfB),
      b.write(shardOfB),
      a.write(),
      c.write(shardOfB),
      c.write(c.shards()[0]),
    ]);
    expect(outcomes).toEqual(["moved", "done", "done", "moved", "done"]);
    expect([a.fatal, b.fatal, c.fatal]).toEqual([[], [], []]);
  },
);

testNeeding([needs.postgres], "[CP-7] nodes that join at the same time share the shards", async () => {
  const nodes = await Promise.all(["a:1", "b:1", "c:1"].map((id) => joinNode(id)));
  await until(isEven(nodes));
  expect(nodes.filter(({ member }) => member.isFirst).length).toBe(1);
  expect(new Set(nodes.map(({ member }) => member.epoch)).size).toBe(3);
});

testNeeding(
  [needs.postgres],
  "[CP-5] [CP-7] a paused node loses its shards within its lease, and its writes are refused when it resumes",
  async () => {
    const clock = createHaltingClock();
    const a = await joinNode("a:1");
    const b = await joinNode("b:1", { clock });
    const c = await joinNode("c:1");
    const nodes = [a, b, c];
    await until(isEven(nodes));
    const ownedShards = b.shards();
    const startedAt = performance.now();
    clock.halt();
    await until(() => b.member.serves_ms <= 0);
    // No node has taken a shard while the old owner could still serve it.
    expect(ownedShards.some((shard) => a.member.has(shard) || c.member.has(shard))).toBe(false);
    await until(isEven([a, c]));
    expect(performance.now() - startedAt).toBeLessThan(LEASE_MS + 4000);
    expect(ownedShards.every((shard) => a.member.has(shard) || c.member.has(shard))).toBe(true);
    expect(await Promise.all([b.write(ownedShards[0]), b.write()])).toEqual(["closed", "closed"]);
    clock.resume();
    await until(() => b.fatal.length === 2);
    expect(b.fatal).toEqual(["another node has taken over", "another node has taken over"]);
    expect([b.member.role, b.member.state.lease]).toEqual(["spare", "free"]);
    await b.leave();
    // A process with the same name joins, and gets shards like any other node.
    const rejoined = await joinNode("b:1");
    await until(isEven([a, rejoined, c]));
    expect([a.fatal, c.fatal, rejoined.fatal]).toEqual([[], [], []]);
  },
);

testNeeding(
  [needs.postgres],
  "[CP-7] a leaving node hands off all shards immediately; shards without a taker stay unowned until the next node joins",
  async () => {
    const a = await joinNode("a:1");
    const b = await joinNode("b:1");
    await until(isEven([a, b]));
    const ownedShards = b.shards();
    const startedAt = performance.now();
    await b.leave();
    await until(() => a.member.count === SHARD_COUNT);
    expect(performance.now() - startedAt).toBeLessThan(LEASE_MS - 500);
    expect([
      a.member.hasNext,
      a
        .listShards("adopt")
        .slice(-ownedShards.length)
        .sort((x, y) => x - y),
    ]).toEqual([false, ownedShards]);
    await a.leave();
    const c = await joinNode("c:1");
    expect([c.member.count, c.fatal]).toEqual([SHARD_COUNT, []]);
    // A single active node takes over: no state of the former nodes is left.
    await c.leave();
    const single = await ClusterNode.join((await makeOptions("d:1")).options);
    cleanups.push(single);
    await single.whenActive();
  },
);

testNeeding(
  [needs.postgres],
  "[CP-7] a shard that is not released within a lease stays until it is; batches for a moved shard are refused",
  async () => {
    const gate = Promise.withResolvers<void>();
    let isStuck = true;
    const releasedShards: number[] = [];
    const a = await joinNode("a:1", {
      handler: {
        releaseShards: async (shards) => {
          releasedShards.push(...shards);
          if (isStuck) await gate.promise;
        },
      },
    });
    const b = await joinNode("b:1");
    await until(() => releasedShards.length > 0);
    const [stuckShard = 0] = releasedShards;
    // The shard has no owner now, so requests for it wait.
    expect([a.member.has(stuckShard), a.member.nodeOf(stuckShard), b.member.has(stuckShard)]).toEqual([
      false,
      undefined,
      false,
    ]);
    await until(() => a.member.has(stuckShard));
    expect([b.member.count, await a.write(stuckShard), a.listShards("adopt").length]).toEqual([0, "done", SHARD_COUNT]);
    isStuck = false;
    gate.resolve();
    await until(() => a.listShards("adopt").length === SHARD_COUNT + releasedShards.length);
    await until(isEven([a, b]));
    const movedShards = a.listShards("releaseShards").filter((shard) => !a.member.has(shard));
    expect(await Promise.all(movedShards.slice(0, 3).map((shard) => a.write(shard)))).toEqual(Array(3).fill("moved"));
    expect([a.fatal, b.fatal]).toEqual([[], []]);
  },
);

testNeeding(
  [needs.postgres],
  "[CP-7] a failed adoption of shards is retried, and no shard moves before it succeeds",
  async () => {
    let failures = 2;
    const a = await joinNode("a:1", {
      handler: {
        adopt: async () => {
          if (failures-- > 0) throw new Error("not now");
        },
      },
    });
    await joinNode("b:1");
    await until(() => a.listShards("releaseShards").length > 0);
    expect(a.listShards("adopt").length).toBe(3 * SHARD_COUNT);
  },
);

testNeeding(
  [needs.postgres],
  "[CL-52] an idle node queries the database three times a second, and is notified when shards move",
  async () => {
    database ??= createDatabase();
    const { url } = await database;
    const proxy = startCountingProxy(new URL(url));
    cleanups.push({ leaveCluster: async () => proxy.stop() });
    const a = await joinNode("a:1", { url: proxy.url.href });
    await using sql = new SQL(url, { max: 1 });
    const waitForRenewals = async (count: number): Promise<void> => {
      const lease = async () =>
        (await sql.unsafe("select expires_at::text as at from leases where node = 'a:1'"))[0].at;
      for (let i = 0; i < count; i++) {
        const before = await lease();
        await until(async () => (await lease()) !== before);
      }
    };
    await waitForRenewals(2);
    const [startedAt, { round_trips }] = [performance.now(), proxy.counts];
    await waitForRenewals(4);
    const seconds = (performance.now() - startedAt) / 1000;
    // Per second: two renewals, which also read the shards, and one query of the nodes and the database.
    expect(proxy.counts.round_trips - round_trips).toBeLessThanOrEqual(3 * seconds + 3);

    const notifications: string[] = [];
    await using listener = new SQL(url, { max: 1 });
    await listener.listen("slipway", (text) => void notifications.push(text));
    const b = await joinNode("b:1");
    await until(isEven([a, b]));
    // One notification of the joining node, two of handovers, and one of the leaving node.
    await until(() => notifications.length >= 3);
    const countBefore = notifications.length;
    await b.leave();
    await until(() => notifications.length > countBefore && a.member.count === SHARD_COUNT);
    expect(notifications.filter((text) => !text.includes('"moves"'))).toEqual([]);
  },
);

testNeeding(
  [needs.postgres],
  "[CP-8] nodes with different settings never write concurrently: the second one explains why and stops",
  async () => {
    const joinAndLead = async (id: string) => {
      const { options } = await makeOptions(id);
      const node = await ClusterNode.join(options);
      cleanups.push(node);
      await node.whenActive();
      return node;
    };
    const getRejectionReason = async (work: Promise<unknown>) => {
      const error = await work.then(
        () => undefined,
        (reason) => reason,
      );
      expect(error).toBeInstanceOf(UnsafeDatabaseError);
      return (error as Error).message;
    };
    const single = await joinAndLead("a:1");
    expect(await getRejectionReason(joinNode("b:1"))).toBe(
      "cluster_active is every here, but node a:1 works on this database with cluster_active = one. Set it to one here, or stop that node first",
    );
    // A spare is rejected when it could take the lease.
    const spare = await ClusterNode.join((await makeOptions("s:1")).options);
    cleanups.push(spare);
    const waiting = new AbortController();
    const led = spare.whenActive(waiting.signal);
    await until(() => spare.leader?.id === "a:1");
    waiting.abort(new Error("enough"));
    expect(await led.catch(({ message }) => message)).toBe("enough");
    await single.leaveCluster();
    const b = await joinNode("b:1");
    expect(b.member.count).toBe(SHARD_COUNT);
    const expectedReason =
      "cluster_active is one here, but nodes work on this database with cluster_active = every (b:1). Set it to every here, or stop them first";
    expect(await getRejectionReason(joinAndLead("c:1"))).toBe(expectedReason);
    expect(await getRejectionReason(spare.whenActive())).toBe(expectedReason);
    await b.leave();
    await spare.whenActive();
    expect(spare.role).toBe("active");
  },
);

testNeeding(
  [needs.postgres],
  "[CP-8] of two nodes that start at the same time with different settings, one writes",
  async () => {
    for (let round = 0; round < 5; round++) {
      const node = await ClusterNode.join((await makeOptions(`one${round}:1`)).options);
      cleanups.push(node);
      const [led, joined] = await Promise.allSettled([node.whenActive(), joinNode(`every${round}:1`)]);
      expect([led.status, joined.status].sort()).toEqual(["fulfilled", "rejected"]);
      await node.leaveCluster();
      if (joined.status === "fulfilled") await joined.value.leave();
    }
  },
);

testNeeding([needs.postgres], "[CP-7] every node survives a database outage that is longer than a lease", async () => {
  const nodes = [await joinNode("a:1"), await joinNode("b:1")];
  await until(isEven(nodes));
  const shards = nodes.map((node) => node.shards());
  let lapses = 0;
  for (const { member } of nodes) {
    member.onLapse(() => {
      lapses++;
    });
  }
  await using sql = new SQL((await makeOptions("")).options.url, { max: 2 });
  const locker = await sql.reserve();
  // Writes to the table of leases hang, as during an outage of the database; reads still work.
  await locker.unsafe("begin; lock table leases in share mode").simple();
  const expiredLeases = "select 1 from leases where expires_at <= clock_timestamp()";
  await until(async () => (await sql.unsafe(expiredLeases)).length === 2);
  const duringOutage = [lapses, nodes.map(({ member }) => member.serves_ms > 0)];
  await locker.unsafe("commit");
  locker.release();
  await until(() => nodes.every(({ member }) => member.serves_ms > 0));
  expect(duringOutage).toEqual([2, [false, false]]);
  expect([nodes.map((node) => node.shards()), nodes.map(({ fatal }) => fatal)]).toEqual([shards, [[], []]]);
});
