// Shards that move between nodes during concurrent writes, on a real PostgreSQL. Also checks that the oracle detects what the guard
// prevents.
import { afterEach, expect } from "bun:test";
import { type ReservedSQL, SQL } from "bun";
import { SHARD_COUNT } from "#base/shards.ts";
import { Primary } from "#db/pg/primary.ts";
import {
  assignOrphanedShards,
  joinShards,
  makeShardsGuard,
  planBalance,
  reclaimShards,
  renewShards,
  transferShards,
} from "#db/pg/shards/moves.ts";
import { PgWriter } from "#db/pg/writer.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { randomFrom } from "#test/support/random.ts";
import { until } from "#test/support/until.ts";
import { awaitOutcome } from "../db/contract.ts";

const LEASE_MS = 60_000;
const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

type Node = { readonly node: string; readonly epoch: number; readonly writer: PgWriter; readonly fatal: Error[] };
let database: TestDatabase | undefined;
const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  await database?.remove();
});

const open = async () => {
  database = await createDatabase();
  const { url } = database;
  const sql = new SQL(url, { max: 4 });
  await sql.unsafe("create table written (n bigserial primary key, part bigint not null, node text not null)");
  const connection = await sql.reserve();
  cleanups.push(async () => {
    connection.release();
    await sql.close();
  });
  const join = async (name: string, guardFor = makeShardsGuard): Promise<Node> => {
    const epoch = await joinShards(connection, name, LEASE_MS);
    const fatal: Error[] = [];
    const primary = new Primary(url);
    const writer = new PgWriter({ primary, guard: guardFor(name, epoch), fatal: (error) => fatal.push(error) });
    cleanups.push(async () => {
      await writer.stop();
      await primary.close();
    });
    return { node: name, epoch, writer, fatal };
  };
  const listShardsOf = async (name: string): Promise<number[]> => {
    const rows: { part: string }[] = await sql.unsafe("select part from parts where node = $1 order by part", [name]);
    return rows.map(({ part }) => Number(part));
  };
  /** Returns who has written to this shard, in order. */
  const listWriters = async (shard: number): Promise<string[]> => {
    const rows: { node: string }[] = await sql.unsafe("select node from written where part = $1 order by n", [shard]);
    return rows.map(({ node }) => node).filter((node, index, writers) => node !== writers[index - 1]);
  };
  return { sql: sql, connection, join, listShardsOf, listWriters };
};

const write = ({ node, writer }: Node, shard?: number): Promise<string> =>
  awaitOutcome(
    writer.submit([{ sql: "insert into written (part, node) values (?, ?)", rows: [[shard ?? -1, node]] }], shard),
  );

const renew = async (connection: ReservedSQL, id: string, epoch: number): Promise<boolean> =>
  (await renewShards(connection, { id, address: id, version: "1", epoch, lease_ms: LEASE_MS, sent: 0 })) !== undefined;

const endLease = (connection: ReservedSQL, name: string): Promise<unknown> =>
  connection.unsafe("update leases set expires_at = '-infinity' where node = $1", [name]);

testNeeding(
  [needs.postgres],
  "[CP-5] shards of a node whose lease has expired move evenly to the live nodes",
  async () => {
    const { connection, join, listShardsOf } = await open();
    const nodes = [await join("a"), await join("b"), await join("c")] as const;
    expect((await assignOrphanedShards(connection, LEASE_MS)).length).toBe(SHARD_COUNT);
    expect(await assignOrphanedShards(connection, LEASE_MS)).toEqual([]);
    const [a, b, c] = await Promise.all([listShardsOf("a"), listShardsOf("b"), listShardsOf("c")]);
    expect([a.length, b.length, c.length].sort()).toEqual([85, 85, 86]);
    const outcomes = await Promise.all([write(nodes[0], a[0]), write(nodes[1], b[0]), write(nodes[2], c[0])]);
    expect(outcomes).toEqual(["done", "done", "done"]);
    // A node cannot write to another's shard, but any node can write what belongs to none.
    expect([await write(nodes[0], b[0]), await write(nodes[0])]).toEqual(["moved", "done"]);
    await endLease(connection, "c");
    const moved = await assignOrphanedShards(connection, LEASE_MS);
    expect(moved.map(({ part }) => part).sort((x, y) => x - y)).toEqual(c);
    expect([(await listShardsOf("a")).length, (await listShardsOf("b")).length]).toEqual([128, 128]);
    expect(await renew(connection, "c", nodes[2].epoch)).toBe(false);
    expect(await renew(connection, "a", nodes[0].epoch)).toBe(true);
    expect([await write(nodes[2], c[0]), await write(nodes[2])]).toEqual(["closed", "closed"]);
    expect(nodes.map(({ fatal }) => fatal.length)).toEqual([0, 0, 1]);
  },
);

testNeeding(
  [needs.postgres],
  "[CP-5] a process with the name of an earlier one fences it and starts without shards",
  async () => {
    const { connection, join, listShardsOf } = await open();
    const before = await join("a");
    await assignOrphanedShards(connection, LEASE_MS);
    const [part = 0] = await listShardsOf("a");
    const rejoined = await join("a");
    expect(await listShardsOf("a")).toEqual([]);
    expect(await renew(connection, "a", before.epoch)).toBe(false);
    expect([await write(before, part), await write(rejoined, part)]).toEqual(["closed", "moved"]);
    await assignOrphanedShards(connection, LEASE_MS);
    expect(await write(rejoined, part)).toBe("done");
  },
);

testNeeding(
  [needs.postgres],
  "[CP-6] [CP-4] a node hands over only its own shards, only to a live node, and no shard twice within a lease",
  async () => {
    const { connection, join, listShardsOf } = await open();
    const a = await join("a");
    await assignOrphanedShards(connection, LEASE_MS);
    await connection.unsafe("update parts set given_at = '-infinity'");
    const b = await join("b");
    const moves = await planBalance(connection, LEASE_MS);
    expect([moves.length, new Set(moves.map(({ to }) => to))]).toEqual([SHARD_COUNT / 2, new Set(["b"])]);
    const [move] = moves;
    const shard = move?.part ?? 0;
    expect(await transferShards(connection, b, [{ part: shard, to: "b" }])).toEqual([]);
    expect(await transferShards(connection, a, [{ part: shard, to: "unknown" }])).toEqual([]);
    expect(await transferShards(connection, a, [{ part: shard, to: "b" }])).toEqual([shard]);
    expect(await transferShards(connection, a, [{ part: shard, to: "b" }])).toEqual([]);
    // A shard that no node took returns and becomes inactive; shards that the node no longer has do not.
    const [, remaining] = moves.map(({ part }) => part);
    await reclaimShards(connection, a, [shard, remaining ?? 0]);
    const laterShards = (await planBalance(connection, LEASE_MS)).map(({ part }) => part);
    expect([laterShards.includes(remaining ?? 0), await listShardsOf("b")]).toEqual([false, [shard]]);
    expect([await write(a, shard), await write(b, shard), await write(a)]).toEqual(["moved", "done", "done"]);
    expect(await listShardsOf("b")).toEqual([shard]);
    // `b` ends before it has any other shard: the one it just got is still moved, and only that.
    await endLease(connection, "b");
    expect(await assignOrphanedShards(connection, LEASE_MS)).toEqual([{ part: shard, to: "a" }]);
    await join("c");
    expect((await planBalance(connection, LEASE_MS)).map(({ part }) => part)).not.toContain(shard);
  },
);

/** Returns who writes, in order, if a commit group has passed its guard with this lock before its shard is handed over. */
const listWritersAfterGuard = async (lock: "share" | "key share"): Promise<string[]> => {
  const { sql, connection, join, listWriters } = await open();
  const [a, b] = [await join("a"), await join("b")];
  await assignOrphanedShards(connection, LEASE_MS);
  await connection.unsafe("update parts set node = 'a', epoch = $1 where part = 7", [a.epoch]);
  const group = await sql.reserve();
  await group.unsafe("begin");
  await group.unsafe(`select 1 from parts where part = 7 and node = 'a' for ${lock}`);
  let isTransferred = false;
  const transfer = transferShards(connection, a, [{ part: 7, to: "b" }]).then((moved) => {
    isTransferred = moved.length > 0;
  });
  const waits = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  await until(async () => isTransferred || (await sql.unsafe(waits)).length > 0, {
    what: "the shard to be transferred or locked",
  });
  if (isTransferred) await write(b, 7);
  await group.unsafe("insert into written (part, node) values (7, 'a')");
  await group.unsafe("commit");
  group.release();
  await transfer;
  await write(b, 7);
  return await listWriters(7);
};

testNeeding(
  [needs.postgres],
  "[CP-6] [CP-3] a handover waits for the commit group in progress, and would not with a weaker lock",
  async () => {
    expect(await listWritersAfterGuard("share")).toEqual(["a", "b"]);
    for (const cleanup of cleanups.splice(0)) await cleanup();
    await database?.remove();
    expect(await listWritersAfterGuard("key share")).toEqual(["b", "a", "b"]);
  },
);

/** Runs nodes that write to all shards as fast as possible while shards move; returns the resulting problems. */
const moveShardsUnderLoad = async (guardFor: typeof makeShardsGuard): Promise<string[]> => {
  const { connection, join, listWriters } = await open();
  const random = randomFrom(SEED);
  const nodes = [await join("a", guardFor), await join("b", guardFor), await join("c", guardFor)];
  await assignOrphanedShards(connection, LEASE_MS);
  const shards = [1, 2, 3, 4];
  const owners = new Map<number, string[]>();
  for (const shard of shards) {
    await connection.unsafe("update parts set node = 'a', epoch = $1 where part = $2", [nodes[0]?.epoch, shard]);
    owners.set(shard, ["a"]);
  }
  let isRunning = true;
  let doneCount = 0;
  const writing = nodes.map(async (node) => {
    while (isRunning) {
      const outcomes = await Promise.all(shards.map((shard) => write(node, shard)));
      doneCount += outcomes.filter((outcome) => outcome === "done").length;
    }
  });
  for (let i = 0; i < 30; i++) {
    const before = doneCount;
    await until(() => doneCount > before + 4, { what: "writes to continue" });
    const shard = shards[Math.floor(random() * shards.length)] ?? 1;
    const source = nodes.find(({ node }) => node === owners.get(shard)?.at(-1));
    const targets = nodes.filter((node) => node !== source);
    const target = targets[Math.floor(random() * targets.length)]?.node ?? "";
    if (source && (await transferShards(connection, source, [{ part: shard, to: target }])).length > 0)
      owners.get(shard)?.push(target);
  }
  isRunning = false;
  await Promise.all(writing);
  const problems: string[] = [];
  for (const shard of shards) {
    const shardOwners = owners.get(shard) ?? [];
    let nextOwner = 0;
    for (const writer of await listWriters(shard)) {
      const ownerIndex = shardOwners.indexOf(writer, nextOwner);
      if (ownerIndex < 0) problems.push(`${writer} has written for part ${shard} when it was not its own`);
      else nextOwner = ownerIndex + 1;
    }
  }
  return problems;
};

testNeeding(
  [needs.postgres],
  `[CP-6] [CP-3] while shards move among three writing nodes, no node writes to another's shard; without the guard the oracle detects it (seed ${SEED})`,
  async () => {
    expect(await moveShardsUnderLoad(makeShardsGuard)).toEqual([]);
    for (const cleanup of cleanups.splice(0)) await cleanup();
    await database?.remove();
    const problems = await moveShardsUnderLoad((node, epoch) => () => makeShardsGuard(node, epoch)([]));
    expect(problems.length).toBeGreaterThan(0);
  },
);
