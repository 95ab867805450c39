// The cache of a read-only node: an entry is valid until a commit on any node changes its data. Without counters of changes, nothing is
// cached.
import { afterEach, expect, test } from "bun:test";
import { SQL } from "bun";
import { readLocally } from "#base/network/local-reads.ts";
import { toCounterUpdate } from "#db/pg/notices/counters.ts";
import { Primary } from "#db/pg/primary.ts";
import { ReadStore } from "#db/pg/read-store.ts";
import { assignOrphanedShards, joinShards, removeNodeFromShards } from "#db/pg/shards/moves.ts";
import { openPgStore, PgStore } from "#db/pg/store.ts";
import { updateUser } from "#db/users/users.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { changeSetting, insertSetting, insertUser, makeUser } from "../batches.ts";
import { awaitOutcome } from "../contract.ts";

let database: TestDatabase | undefined;
afterEach(() => database?.remove());

test("[PQ-16] a group counts its changes to lists and callers once, and does not count other changes", () => {
  const makeTouching = (...touches: ("workspaces" | "agents" | "callers" | "audit" | "lines")[]) => ({
    batch: [{ sql: "", rows: [[]], touches }],
  });
  const writer = { node: "n", epoch: 7 };
  expect(toCounterUpdate(writer, [makeTouching("audit"), makeTouching("lines"), makeTouching()])).toBeUndefined();
  expect(toCounterUpdate(writer, [makeTouching("agents"), makeTouching("workspaces")])?.params).toEqual([
    "n",
    7,
    1,
    0,
    1,
  ]);
  expect(toCounterUpdate(writer, [makeTouching("lines"), makeTouching("callers")])?.params).toEqual(["n", 7, 0, 1, 0]);
  // A batch that does not state what it touches affects all data.
  expect(toCounterUpdate(writer, [{ batch: [{ sql: "", rows: [[]] }] }])?.params).toEqual(["n", 7, 1, 1, 1]);
  // Writes of one workspace's agents do not affect other workspaces.
  const [secondBatch, firstBatch] = [
    { ...makeTouching("agents"), about: "two" },
    { ...makeTouching("agents", "lines"), about: "one" },
  ];
  expect(toCounterUpdate(writer, [secondBatch, firstBatch, secondBatch])?.params).toEqual([
    "n",
    7,
    1,
    0,
    0,
    "{one,two}",
  ]);
  expect(toCounterUpdate(writer, [secondBatch, { ...makeTouching("workspaces"), about: "three" }])?.params).toEqual([
    "n",
    7,
    1,
    0,
    1,
    "{two}",
  ]);
});

/** Returns the versions in a request to this store. */
const loadVersions = (store: ReadStore) =>
  readLocally(async () => {
    await store.refreshVersions();
    return [store.shownVersion, store.callersVersion, store.getVersion()];
  });

/** Returns the versions of the lists of workspaces, and of two workspaces, in a request to this store. */
const loadShownVersions = (store: ReadStore) =>
  readLocally(async () => {
    await store.refreshVersions();
    return [store.listedVersion, ...(await store.loadVersions(["one", "other"]))];
  });

testNeeding(
  [needs.postgres],
  "[PQ-16] a reading node checks the counters before it uses its cache, and caches nothing if the writing node does not count",
  async () => {
    database = await createDatabase();
    const { url } = database;
    const spare = new ReadStore(new Primary(url), () => {
      throw new Error("writes nothing");
    });
    const open = (sendsNotices: boolean): Promise<PgStore> =>
      openPgStore({ url, now: 0, sendsNotices, fatal: () => {} });
    const findRaised = async (work: () => Promise<unknown>): Promise<boolean[]> => {
      const before = (await loadVersions(spare)) ?? [];
      await work();
      return ((await loadVersions(spare)) ?? []).map((version, i) => version !== before[i]);
    };
    const silent = await open(false);
    await silent.commit([insertUser(makeUser("ada"))]);
    expect(await loadVersions(spare)).toEqual([undefined, undefined, undefined]);
    await silent.close();

    let store = await open(true);
    await store.commit([insertSetting({ key: "a", value: "1" })]);
    expect((await loadVersions(spare))?.every((version) => version !== undefined)).toBe(true);
    // Outside of a request, versions are undefined.
    expect([spare.shownVersion, spare.callersVersion, spare.getVersion()]).toEqual([undefined, undefined, undefined]);
    expect(await findRaised(async () => {})).toEqual([false, false, false]);
    expect(await findRaised(() => store.commit([{ sql: "delete from timers", rows: [[]], touches: [] }]))).toEqual([
      false,
      false,
      false,
    ]);
    expect(await findRaised(() => store.commit([changeSetting("a", { value: "2" })]))).toEqual([true, false, true]);
    expect(await findRaised(() => store.commit([updateUser("id-of-ada", { name: "Ada" })]))).toEqual([
      true,
      true,
      true,
    ]);
    const refused = { ...changeSetting("missing", { value: "" }), expect: 1 };
    expect(await findRaised(() => awaitOutcome(store.commit([refused])))).toEqual([false, false, false]);
    // Another node is active now. Until it counts changes, there are no versions.
    await store.close();
    store = await open(true);
    expect(await loadVersions(spare)).toEqual([undefined, undefined, undefined]);
    expect(await findRaised(() => store.commit([changeSetting("a", { value: "3" })]))).toEqual([true, true, true]);
    // Events published while the connection was down are not missed.
    await database.cutConnections();
    expect(await findRaised(() => store.commit([changeSetting("a", { value: "4" })]).catch(() => {}))).not.toEqual([
      false,
      false,
      false,
    ]);
    await store.close();
    await spare.close();
  },
);

testNeeding(
  [needs.postgres],
  "[PQ-16] a read after an acknowledged write sees it, even when other reads share its check",
  async () => {
    database = await createDatabase();
    const store = await openPgStore({ url: database.url, now: 0, sendsNotices: true, fatal: () => {} });
    const spare = new ReadStore(new Primary(database.url), () => {
      throw new Error("writes nothing");
    });
    await store.commit([insertSetting({ key: "n", value: "0" })]);
    const query = { sql: "select value from settings where key = 'n'", params: [], map: ([n]: unknown[]) => Number(n) };
    let acknowledged = 0;
    let isRunning = true;
    const cached = { version: undefined as number | undefined, value: 0 };
    let hitCount = 0;
    const read = (): Promise<void> =>
      readLocally(async () => {
        const minimum = acknowledged;
        await spare.refreshVersions();
        const version = spare.shownVersion;
        if (version !== undefined && version === cached.version) hitCount++;
        const value = version !== undefined && version === cached.version ? cached.value : await spare.get(query);
        expect(value).toBeGreaterThanOrEqual(minimum);
        Object.assign(cached, { version, value });
      }) as Promise<void>;
    const readers = Array.from({ length: 16 }, async () => {
      while (isRunning) await read();
    });
    for (let n = 1; n <= 200; n++) {
      await store.commit([changeSetting("n", { value: String(n) })]);
      acknowledged = n;
    }
    isRunning = false;
    await Promise.all(readers);
    expect(hitCount).toBeGreaterThan(0);
    await store.close();
    await spare.close();
  },
);

testNeeding(
  [needs.postgres],
  "[PQ-16] each writing node counts changes from the time it joins; when one dies or leaves, caches are refreshed and reads continue",
  async () => {
    database = await createDatabase();
    const { url } = database;
    await using sql = new SQL(url, { max: 2 });
    const connection = await sql.reserve();
    const spare = new ReadStore(new Primary(url), () => {
      throw new Error("writes nothing");
    });
    const joined: PgStore[] = [];
    const join = async (node: string) => {
      const epoch = await joinShards(connection, node, 60_000);
      const store = new PgStore(new Primary(url), node, epoch, { fatal: () => {}, sendsNotices: true, isShared: true });
      joined.push(store);
      return { node, epoch, store };
    };
    const findRaised = async (work: () => Promise<unknown>): Promise<boolean[]> => {
      const before = (await loadVersions(spare)) ?? [];
      expect(before).not.toContain(undefined);
      await work();
      return ((await loadVersions(spare)) ?? []).map((version, i) => version !== before[i]);
    };
    // Before, the only active node was one that does not count changes. Its row stays until another node joins.
    await (await openPgStore({ url, now: 0, sendsNotices: false, fatal: () => {} })).close();
    expect(await loadVersions(spare)).toEqual([undefined, undefined, undefined]);
    const a = await join("a");
    const b = await join("b");
    expect(await findRaised(async () => {})).toEqual([false, false, false]);
    const putValue = (store: PgStore, key: string) => store.commit([insertSetting({ key, value: "1" })]);
    expect(await findRaised(() => putValue(a.store, "a"))).toEqual([true, false, true]);
    expect(await findRaised(() => putValue(b.store, "b"))).toEqual([true, false, true]);
    // A node does not cache by its own count, because there are writes of other nodes. For callers, it uses only counters that it has
    // queried.
    expect([a.store.shownVersion, a.store.callersVersion, a.store.getVersion("w")]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    const loadCallersVersion = async (): Promise<number> => {
      await a.store.refreshCallersVersion();
      return a.store.callersVersion ?? Number.NaN;
    };
    const before = await loadCallersVersion();
    await putValue(b.store, "neither");
    expect(await loadCallersVersion()).toBe(before);
    for (const [i, { store }] of [b, a].entries()) {
      await store.commit([insertUser(makeUser(`caller-${i}`))]);
      expect(await loadCallersVersion()).toBe(before + i + 1);
    }
    // The newest epoch belongs to the node that joined last.
    expect(await findRaised(() => removeNodeFromShards(connection, b, 60_000))).toEqual([true, true, true]);
    expect(await findRaised(() => putValue(a.store, "c"))).toEqual([true, false, true]);
    const c = await join("c");
    await connection.unsafe("update leases set expires_at = '-infinity' where node = 'c'");
    expect(await findRaised(() => assignOrphanedShards(connection, 60_000))).toEqual([true, true, true]);
    expect(await awaitOutcome(putValue(c.store, "d"))).toBe("closed");
    expect(await findRaised(() => putValue(a.store, "e"))).toEqual([true, false, true]);
    expect(await findRaised(() => join("a"))).toEqual([true, true, true]);
    connection.release();
    for (const store of joined) await store.close();
    await spare.close();
  },
);

testNeeding(
  [needs.postgres],
  "[PQ-16] writes by the agents of one workspace invalidate the cache of that workspace only",
  async () => {
    database = await createDatabase();
    const { url } = database;
    await using sql = new SQL(url, { max: 1 });
    using connection = await sql.reserve();
    const spare = new ReadStore(new Primary(url), () => {
      throw new Error("writes nothing");
    });
    const stores: PgStore[] = [];
    for (const node of ["a", "b"]) {
      const epoch = await joinShards(connection, node, 60_000);
      stores.push(new PgStore(new Primary(url), node, epoch, { fatal: () => {}, sendsNotices: true, isShared: true }));
    }
    const [a, b] = stores as [PgStore, PgStore];
    const agentWrites = [{ sql: "delete from timers", rows: [[]], touches: ["agents"] as const }];
    const findRaised = async (work: () => Promise<unknown>): Promise<boolean[]> => {
      const before = (await loadShownVersions(spare)) ?? [];
      expect(before).not.toContain(undefined);
      await work();
      return ((await loadShownVersions(spare)) ?? []).map((version, i) => version !== before[i]);
    };
    expect(await findRaised(async () => {})).toEqual([false, false, false]);
    for (const store of [a, b, a]) {
      expect(await findRaised(() => store.commit(agentWrites, { about: "one" }))).toEqual([false, true, false]);
      expect(await findRaised(() => store.commit(agentWrites, { about: "other" }))).toEqual([false, false, true]);
      expect(await findRaised(() => store.commit(agentWrites, { about: "a third" }))).toEqual([false, false, false]);
    }
    const commitBoth = () =>
      Promise.all([
        a.commit(agentWrites, { about: "other" }),
        b.commit(agentWrites, { about: "one" }),
        a.commit(agentWrites, { about: "one" }),
      ]);
    expect(await findRaised(commitBoth)).toEqual([false, true, true]);
    // The batch does not name the workspace, or also writes other rows.
    expect(await findRaised(() => b.commit(agentWrites))).toEqual([true, true, true]);
    expect(
      await findRaised(() => b.commit([...agentWrites, insertSetting({ key: "a", value: "1" })], { about: "one" })),
    ).toEqual([true, true, true]);
    expect(await findRaised(() => removeNodeFromShards(connection, { node: "b", epoch: b.epoch }, 60_000))).toEqual([
      true,
      true,
      true,
    ]);
    // Outside of a request, versions are undefined.
    expect([spare.listedVersion, ...(await spare.loadVersions(["one"]))]).toEqual([undefined, undefined]);
    for (const store of [...stores, spare]) await store.close();
  },
);
