// The guard of a commit group, which checks its shards, on a real PostgreSQL.
import { afterEach, expect } from "bun:test";
import { SQL } from "bun";
import { openPgStore, type PgStore } from "#db/pg/store.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { until } from "#test/support/until.ts";
import { listSettings, upsertSetting } from "../batches.ts";
import { awaitOutcome } from "../contract.ts";

let database: TestDatabase | undefined;
let store: PgStore | undefined;
afterEach(async () => {
  await store?.close();
  await database?.remove();
});

const fatal: Error[] = [];
const open = async () => {
  database = await createDatabase();
  const { url } = database;
  const pgStore = await openPgStore({ url, now: 0, fatal: (error) => fatal.push(error) });
  store = pgStore;
  const commit = (key: string, shard?: number) =>
    awaitOutcome(pgStore.commit([upsertSetting({ key, value: "" })], { of: shard }));
  const listKeys = async () => (await pgStore.all(listSettings())).map(({ key }) => key);
  return { url, commit, listKeys };
};

testNeeding([needs.postgres], "[CP-3] a single writing node owns all shards", async () => {
  const { commit, listKeys } = await open();
  const outcomes = await Promise.all([commit("a", 0), commit("b", 255), commit("c"), commit("d", 7), commit("e", 7)]);
  expect(outcomes).toEqual(["done", "done", "done", "done", "done"]);
  // The shard does not exist.
  expect(await commit("f", 256)).toBe("moved");
  expect(await listKeys()).toEqual(["a", "b", "c", "d", "e"]);
});

testNeeding(
  [needs.postgres],
  "[CP-3] batches for another node's shards are refused, all others are written",
  async () => {
    const { url, commit, listKeys } = await open();
    await using sql = new SQL(url, { max: 1 });
    // "parts" is the table of shards.
    await sql.unsafe("update parts set node = 'other' where part in (7, 8)");
    const outcomes = await Promise.all([
      ...[commit("a", 7), commit("b", 6), commit("c"), commit("d", 8), commit("e", 7), commit("f", 9)],
    ]);
    expect(outcomes).toEqual(["moved", "done", "done", "moved", "moved", "done"]);
    expect(await listKeys()).toEqual(["b", "c", "f"]);
    // Now an earlier epoch of the same node owns the shard, and not this process.
    await sql.unsafe("update parts set node = '', epoch = 0 where part = 7");
    expect(await commit("g", 7)).toBe("moved");
    expect(fatal).toEqual([]);
  },
);

testNeeding([needs.postgres], "[CP-3] taking a shard waits for the commit group that holds its guard", async () => {
  const { url, commit } = await open();
  await using sql = new SQL(url, { max: 3 });
  const isWaiting = async (queryPattern: string): Promise<boolean> => {
    const waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    return (await sql.unsafe(`${waiting} and query like $1`, [queryPattern])).length > 0;
  };
  expect(await commit("held", 7)).toBe("done");
  // Between its guard and its COMMIT, the group waits for a row that another client has locked.
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  await holder.unsafe("select 1 from settings where key = 'held' for update");
  const heldCommit = commit("held", 7);
  await until(() => isWaiting("insert into%settings%"), { what: "the group to stall" });
  const order: string[] = [];
  const takeover = sql.unsafe("update parts set node = 'other' where part = 7").then(() => order.push("taken"));
  await until(() => isWaiting("update parts%"), { what: "the takeover of the shard to wait" });
  await holder.unsafe("commit");
  holder.release();
  order.push(await heldCommit);
  await takeover;
  expect(order.sort()).toEqual(["done", "taken"]);
  expect(await commit("late", 7)).toBe("moved");
});
