// Checks that the oracle of active nodes detects what it should: from events alone, and on a real database whose shard guard is missing or
// too weak.
import { afterEach, expect, test } from "bun:test";
import { SQL } from "bun";
import { Primary } from "#db/pg/primary.ts";
import { assignOrphanedShards, joinShards, makeShardsGuard, transferShards } from "#db/pg/shards/moves.ts";
import { PgWriter } from "#db/pg/writer.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { until } from "#test/support/until.ts";
import { loadShardEvents, recordShardWriters } from "../crash/cluster/shard-events.ts";
import { checkShardEvents, type ShardEvent } from "../crash/cluster/shards-oracle.ts";

const giveShard = (shard: number, node: string): ShardEvent => ({ kind: "given", part: shard, node });
const writeLine = (shard: number, writer: string): ShardEvent => ({
  kind: "wrote",
  part: shard,
  writer,
  what: "a line",
});
const beginJob = (shard: number, writer: string): ShardEvent => ({
  kind: "began",
  part: shard,
  writer,
  what: "job 1",
});

test("[CP-3] accepts shards that return to an earlier owner, and recreated connections", () => {
  expect(
    checkShardEvents([
      ...[giveShard(1, "a 1"), giveShard(2, "b 2"), writeLine(1, "c1"), writeLine(2, "c2")],
      ...[
        giveShard(1, "b 2"),
        writeLine(1, "c2"),
        giveShard(1, "a 1"),
        writeLine(1, "c1"),
        writeLine(1, "c3"),
        writeLine(2, "c4"),
      ],
    ]),
  ).toEqual([]);
});

test("[CP-3] detects a writer for a shard that belongs to another node, was lost, or is unowned", () => {
  expect(checkShardEvents([giveShard(1, "a 1"), writeLine(1, "c1"), giveShard(1, "b 2"), writeLine(1, "c1")])).toEqual([
    "a line of part 1 was written by a 1 while b 2 owned it",
  ]);
  expect(checkShardEvents([giveShard(1, "a 1"), giveShard(2, "b 2"), writeLine(1, "c1"), writeLine(2, "c1")])).toEqual([
    "a line of part 2 was written by a 1 while b 2 owned it",
  ]);
  expect(checkShardEvents([writeLine(1, "c1")])).toEqual([
    "a line of part 1 was written by no node while no node owned it",
  ]);
});

test("[CP-3] detects a job that its node starts twice, and lets the next node continue it", () => {
  const jobs = [giveShard(1, "a 1"), beginJob(1, "c1"), giveShard(1, "b 2"), beginJob(1, "c2")];
  expect(checkShardEvents(jobs)).toEqual([]);
  expect(checkShardEvents([...jobs, beginJob(1, "c2")])).toEqual(["job 1 of part 1 was started twice by b 2"]);
  // The next owner died before it started the job.
  expect(checkShardEvents([...jobs, giveShard(1, "a 1"), giveShard(1, "b 2"), beginJob(1, "c2")])).toEqual([]);
});

test("[CP-3] [CP-54] detects a job run that overlaps the next one, even if the shard was elsewhere in between", () => {
  const logLine = (line: string): ShardEvent => ({ kind: "logged", part: 1, writer: "c1", what: "job 1", line });
  const ended: ShardEvent = { kind: "ended", part: 1, writer: "c1", what: "job 1" };
  const roundTrip = [giveShard(1, "b 2"), giveShard(1, "a 1")];
  const first = [giveShard(1, "a 1"), beginJob(1, "c1"), logLine("begin")];
  // A node that gets the shard back starts over, once the earlier run has ended.
  expect(
    checkShardEvents([...first, ...roundTrip, beginJob(1, "c1"), logLine("begin"), logLine("end"), ended]),
  ).toEqual([]);
  expect(
    checkShardEvents([
      ...first,
      ...roundTrip,
      beginJob(1, "c1"),
      logLine("begin"),
      logLine("end"),
      logLine("end"),
      ended,
    ]),
  ).toEqual(['job 1 of part 1 logged "end" twice by a 1']);
  expect(checkShardEvents([...first, logLine("end"), ended, logLine("more")])).toEqual([
    "job 1 of part 1 logged after its end by a 1",
  ]);
  expect(checkShardEvents([...first, ended, ...roundTrip, beginJob(1, "c1"), ended])).toEqual([
    "job 1 of part 1 began after its end by a 1",
  ]);
  expect(checkShardEvents([...first, ended, ended])).toEqual(["job 1 of part 1 ended after its end by a 1"]);
});

const LEASE_MS = 60_000;
const SHARD = 7;
let database: TestDatabase | undefined;
const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  await database?.remove();
});

/** Opens two nodes, of which `a` has the shard, on a database that records who writes to it. */
const openTwoNodes = async (guardFor = makeShardsGuard) => {
  database = await createDatabase();
  const { url } = database;
  const sql = new SQL(url, { max: 3 });
  cleanups.push(() => sql.close());
  await sql.unsafe("create table written (part bigint not null)");
  const mover = await sql.reserve();
  cleanups.push(async () => mover.release());
  const join = async (name: string) => {
    const epoch = await joinShards(mover, name, LEASE_MS);
    const primary = new Primary(url);
    const writer = new PgWriter({ primary, guard: guardFor(name, epoch), fatal: () => {} });
    cleanups.push(async () => {
      await writer.stop();
      await primary.close();
    });
    const write = () =>
      writer.submit([{ sql: "insert into written (part) values (?)", rows: [[SHARD]] }], SHARD).catch(() => {});
    return { node: name, epoch, write };
  };
  const [a, b] = [await join("a"), await join("b")];
  await assignOrphanedShards(mover, LEASE_MS);
  await mover.unsafe("update parts set node = 'a', epoch = $1 where part = $2", [a.epoch, SHARD]);
  await recordShardWriters(url, { written: "new.part" });
  const giveToB = () => transferShards(mover, a, [{ part: SHARD, to: "b" }]);
  const listProblems = async () =>
    checkShardEvents(await loadShardEvents(url)).map((problem) => problem.replace(/ \d+/g, " N"));
  return { sql, a, b, giveToB, listProblems };
};

const EXPECTED_PROBLEMS = ["written of part N was written by a N while b N owned it"];

testNeeding(
  [needs.postgres],
  "[CP-3] a node without a shard guard writes to a shard that it has handed over, and the oracle detects it",
  async () => {
    const write = async ({ a, b, giveToB, listProblems }: Awaited<ReturnType<typeof openTwoNodes>>) => {
      await a.write();
      await giveToB();
      await b.write();
      await a.write();
      return await listProblems();
    };
    expect(await write(await openTwoNodes())).toEqual([]);
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
    await database?.remove();
    expect(await write(await openTwoNodes((node, epoch) => () => makeShardsGuard(node, epoch)([])))).toEqual(
      EXPECTED_PROBLEMS,
    );
  },
);

/** Returns the problems if a commit group of `a` has passed its guard before the shard is handed over; `lock` is the guard's lock. */
const checkAfterGuard = async (lock: "share" | "key share"): Promise<string[]> => {
  const { sql, a, b, giveToB, listProblems } = await openTwoNodes();
  const [{ text }] = await sql.unsafe("select pg_get_functiondef('own_parts'::regproc) as text");
  expect(text.split("for share").length).toBe(3);
  await sql.unsafe(text.replaceAll("for share", `for ${lock}`));
  const group = await sql.reserve();
  const guard = makeShardsGuard("a", a.epoch)([SHARD]);
  const passGuard = async () => {
    await group.unsafe("begin");
    await group.unsafe(guard.text, guard.params as never[]);
  };
  const writeAndCommit = async () => {
    await group.unsafe("insert into written (part) values ($1)", [SHARD]);
    await group.unsafe("commit");
  };
  await passGuard();
  await writeAndCommit();
  await passGuard();
  let isTransferred = false;
  const transfer = giveToB().then(() => {
    isTransferred = true;
  });
  const waits = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  await until(async () => isTransferred || (await sql.unsafe(waits)).length > 0, {
    what: "the shard to be transferred or locked",
  });
  if (isTransferred) await b.write();
  await writeAndCommit();
  group.release();
  await transfer;
  await b.write();
  return await listProblems();
};

testNeeding(
  [needs.postgres],
  "[CP-3] with a weaker lock, a group writes to a shard after its handover, and the oracle detects it",
  async () => {
    expect(await checkAfterGuard("share")).toEqual([]);
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
    await database?.remove();
    expect(await checkAfterGuard("key share")).toEqual(EXPECTED_PROBLEMS);
  },
);
