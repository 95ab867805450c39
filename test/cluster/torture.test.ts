// The short form of the cluster torture test. Also checks that its oracle detects what it should.
import { afterEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { Primary } from "#db/pg/primary.ts";
import { makeGuard } from "#db/pg/shards/guard.ts";
import { openPgStore, type PgStore } from "#db/pg/store.ts";
import { PgWriter } from "#db/pg/writer.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { until } from "#test/support/until.ts";
import { checkWrites, type Outcome, type Row, type Write } from "../crash/cluster/cluster-oracle.ts";
import { tortureCluster } from "../crash/cluster/server-cluster.ts";

describe("the oracle", () => {
  const rows = (...names: string[]): Row[] => names.map((name) => ({ name, epoch: 1 }));
  const makeWrites = (outcome: Outcome, ...names: string[]): Write[] => names.map((name) => ({ name, outcome }));

  test("[CL-7] detects lost writes, refused writes that exist, and duplicates", () => {
    const writes = [
      ...makeWrites("done", "a", "b", "c"),
      ...makeWrites("refused", "d", "e"),
      ...makeWrites("unknown", "f", "g"),
    ];
    expect(checkWrites(writes, rows("a", "b", "c", "f"))).toEqual([]);
    expect(checkWrites(writes, rows("a", "c", "c", "e", "g", "g"))).toEqual([
      "b was acknowledged, but is lost",
      "c exists 2 times",
      "e was refused, but exists",
      "g exists 2 times",
    ]);
  });

  test("[CL-7] detects a node that writes after the next one has started", () => {
    const row = (name: string, epoch: number): Row => ({ name, epoch });
    expect(checkWrites([], [row("a", 1), row("b", 2), row("c", 2)])).toEqual([]);
    expect(checkWrites([], [row("a", 1), row("b", 2), row("c", 1)])).toEqual([
      "c was written by epoch 1 after a write of epoch 2",
    ]);
  });
});

describe("on a real database", () => {
  let database: TestDatabase | undefined;
  afterEach(() => database?.remove());

  /** Returns the problems if an older node with this guard keeps writing after a newer one has started. */
  const runTwoNodes = async (
    guardFor: (epoch: number) => (shards: readonly number[]) => { text: string; params: unknown[] },
  ): Promise<string[]> => {
    database = await createDatabase();
    const { url } = database;
    await using sql = new SQL(url, { max: 1 });
    await sql.unsafe("create table written (number bigserial primary key, name text not null, epoch bigint not null)");
    const primary = new Primary(url);
    const first = await openPgStore({ url, now: 0, fatal: () => {} });
    const older = new PgWriter({ primary, fatal: () => {}, guard: guardFor(first.epoch) });
    const writes: Write[] = [];
    const write = async (writer: Pick<PgWriter, "submit">, name: string, epoch: number): Promise<void> => {
      const batch = [{ sql: "insert into written (name, epoch) values (?, ?)", rows: [[name, epoch]] }];
      const outcome = await writer.submit(batch).then(
        () => "done" as const,
        () => "refused" as const,
      );
      writes.push({ name, outcome });
    };
    await write(older, "a", first.epoch);
    const second = await openPgStore({ url, now: 0, fatal: () => {} });
    await write(second.writer, "b", second.epoch);
    await write(older, "c", first.epoch);
    await older.stop();
    for (const store of [first, second]) await store.close();
    await primary.close();
    const rows = (await sql.unsafe("select name, epoch::int as epoch from written order by number")) as Row[];
    await sql.close();
    return checkWrites(writes, [...rows]);
  };

  testNeeding(
    [needs.postgres],
    "[CL-7] [PQ-5] the guard keeps an older node from writing, and without it the oracle detects the writes",
    async () => {
      expect(await runTwoNodes((epoch) => makeGuard("", epoch))).toEqual([]);
      await database?.remove();
      // Each half of the guard alone.
      const text = "select own_parts('', $1, '{}')";
      expect(await runTwoNodes((epoch) => () => ({ text, params: [epoch] }))).toEqual([]);
      await database?.remove();
      expect(await runTwoNodes((epoch) => () => ({ text: "select own_epoch($1)", params: [epoch] }))).toEqual([]);
      await database?.remove();
      const problems = await runTwoNodes(() => () => ({ text: "select 1", params: [] }));
      expect(problems.map((problem) => problem.replace(/\d+/g, "N"))).toEqual([
        "c was written by epoch N after a write of epoch N",
      ]);
    },
  );
});

/** The rows that a guard locks. */
const GUARDED = { epoch: "id = 1", fences: "node = ''", parts: "part = 7" };

/** Returns the problems if an older node has passed its guard before a newer one starts; `lock` is the guard's lock on its row. */
const checkAfterGuard = async (lock: "share" | "key share", row: keyof typeof GUARDED): Promise<string[]> => {
  const database = await createDatabase();
  const { url } = database;
  const sql = new SQL(url, { max: 2 });
  await sql.unsafe("create table written (number bigserial primary key, name text not null, epoch bigint not null)");
  const first = await openPgStore({ url, now: 0, fatal: () => {} });
  const older = await sql.reserve();
  await older.unsafe("begin");
  expect(await older.unsafe(`select 1 from ${row} where ${GUARDED[row]} for ${lock}`)).toHaveLength(1);
  let second: PgStore | undefined;
  const opened = openPgStore({ url, now: 0, fatal: () => {} }).then((store) => {
    second = store;
  });
  const isLockAwaited = async (): Promise<boolean> =>
    (await sql.unsafe("select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"))
      .length > 0;
  await until(async () => second !== undefined || (await isLockAwaited()), {
    what: "the newer node to begin, or to wait",
  });
  const write = (epoch: number, name: string) => ({
    sql: "insert into written (name, epoch) values (?, ?)",
    rows: [[name, epoch]],
  });
  await second?.commit([write(second.epoch, "newer")]);
  await older.unsafe("insert into written (name, epoch) values ('older', $1)", [first.epoch]);
  await older.unsafe("commit");
  older.release();
  await opened;
  await second?.commit([write(second.epoch, "last")]);
  const rows = (await sql.unsafe("select name, epoch::int as epoch from written order by number")) as Row[];
  for (const store of [first, second]) await store?.close();
  await sql.close();
  await database.remove();
  return checkWrites([], [...rows]).map((problem) => problem.replace(/\d+/g, "N"));
};

for (const row of ["epoch", "fences", "parts"] as const) {
  testNeeding(
    [needs.postgres],
    `[CL-7] [PQ-5] a guard's share lock on its row of ${row} delays the next node; with a weaker lock, the oracle detects the conflict`,
    async () => {
      expect(await checkAfterGuard("share", row)).toEqual([]);
      expect(await checkAfterGuard("key share", row)).toEqual([
        "older was written by epoch N after a write of epoch N",
      ]);
    },
  );
}

testNeeding(
  [needs.postgres],
  "[CL-7] three nodes under load lose nothing acknowledged when one is killed and one is paused",
  async () => {
    const { problems, acknowledged } = await tortureCluster(["kill", "stop"], 7);
    expect(problems).toEqual([]);
    expect(acknowledged).toBeGreaterThan(30);
  },
  scaleTimeout(240_000),
);
