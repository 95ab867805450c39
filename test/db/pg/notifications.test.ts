// Events that a writing node publishes to the others: they are delivered with their commit, even if connections break.
import { afterEach, expect } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "#base/clock.ts";
import { Listener } from "#db/pg/notices/listener.ts";
import type { BroadcastEvent, Notice } from "#db/pg/notices/notice.ts";
import { Primary } from "#db/pg/primary.ts";
import { ShardsMember } from "#db/pg/shards/member.ts";
import { openPgStore } from "#db/pg/store.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { until } from "#test/support/until.ts";
import { awaitOutcome } from "../contract.ts";

let database: TestDatabase | undefined;
afterEach(() => database?.remove());

/** Writes a setting, like something recorded in the audit log. */
const insertAudited = (key: string, expect?: number) => ({
  sql: "insert into settings (key, value) select ?, '1' where not exists (select 1 from settings where key = ?)",
  rows: [[key, key]],
  touches: ["audit"] as const,
  ...(expect === undefined ? {} : { expect }),
});

testNeeding(
  [needs.postgres],
  "[PQ-12] each group is announced once, a rejected group never, and an announcement lost with the connection is repeated",
  async () => {
    database = await createDatabase();
    const { url } = database;
    const store = await openPgStore({ url, now: 0, sendsNotices: true, fatal: () => {} });
    const primary = new Primary(url);
    const received: Notice[] = [];
    const listener = new Listener({ primary, clock: systemClock });
    listener.subscribe((notice) => void received.push(notice));
    const listIds = (): string[] => received.flatMap((notice) => (notice.words ?? []).map(({ id }) => id));
    await until(() => received.some(({ all }) => all), { what: "everything at the beginning" });
    // Before the first notice of an epoch, some may have been missed.
    store.broadcast("key_gone", "first", {});
    await until(() => received.some(({ epoch }) => epoch === store.epoch));
    received.splice(0);

    await Promise.all(["a", "b", "c"].map((key) => store.commit([insertAudited(key, 1)])));
    expect(await awaitOutcome(store.commit([insertAudited("a", 1)]))).toBe("stale");
    store.broadcast("key_gone", "one", {});
    store.broadcast("access_changed", "two", {});
    await until(() => listIds().length >= 2);
    expect(received).toEqual([
      { epoch: store.epoch, n: 2, audit: true },
      {
        epoch: store.epoch,
        n: 4,
        words: [
          { kind: "key_gone", id: "one", event: {} },
          { kind: "access_changed", id: "two", event: {} },
        ],
      },
    ]);

    received.splice(0);
    await database.cutConnections();
    store.broadcast("key_gone", "three", {});
    // The listener was disconnected too: it receives the event, or the notice that it may have missed events.
    await until(() => listIds().includes("three") || received.some(({ all }) => all));
    await listener.close();
    await primary.close();
    await store.close();
  },
);

testNeeding(
  [needs.postgres],
  "[CL-50] a node's writer and its reader share one listening connection, and both reload after it was cut",
  async () => {
    database = await createDatabase();
    const { url, name } = database;
    const options = { url, version: "1", lease_ms: 6_000, sendsNotices: true, clock: systemClock, fatal: () => {} };
    const [firstNode, secondNode] = [
      await ShardsMember.join({ ...options, id: "a:1" }),
      await ShardsMember.join({ ...options, id: "b:1" }),
    ];
    const [store, reads, otherStore] = [
      firstNode.openStore(),
      firstNode.openReads(() => {
        throw new Error("not here");
      }),
      secondNode.openStore(),
    ];
    const received: Record<"writing" | "reading", string[]> = { writing: [], reading: [] };
    const receiveEvents = (role: keyof typeof received) => (words: readonly BroadcastEvent[] | undefined) =>
      received[role].push(...(words ? words.map(({ id }) => id) : ["everything"]));
    store.onBroadcast(receiveEvents("writing"));
    reads.listen(receiveEvents("reading"));
    const haveBothReceived = (event: string): boolean =>
      Object.values(received).every((events) => events.includes(event));
    await until(() => haveBothReceived("everything"), { what: "everything at the beginning" });
    otherStore.broadcast("key_gone", "first", {});
    await until(() => haveBothReceived("first"), { what: "both to receive an event" });

    const before = reads.auditVersion ?? 0;
    for (const events of Object.values(received)) events.splice(0);
    await using sql = new SQL(url, { max: 1 });
    // Each node has one listening connection.
    const ofName = "from pg_stat_activity where datname = $1 and query ilike 'listen%'";
    const [counted] = await sql.unsafe(`select count(*)::int as connections ${ofName}`, [name]);
    expect(counted).toEqual({ connections: 2 });
    await sql.unsafe(`select pg_terminate_backend(pid) ${ofName}`, [name]);
    await until(() => haveBothReceived("everything"), { what: "everything after reconnecting" });
    expect(reads.auditVersion ?? 0).toBeGreaterThan(before);
    otherStore.broadcast("key_gone", "second", {});
    await until(() => haveBothReceived("second"), { what: "both to receive an event again" });

    await reads.close();
    for (const openStore of [store, otherStore]) await openStore.close();
    for (const member of [secondNode, firstNode]) await member.leaveCluster();
  },
);

testNeeding(
  [needs.postgres],
  "[CL-51] idle nodes send nothing, and a listener that missed an event reloads even if its connection is intact",
  async () => {
    database = await createDatabase();
    const { url } = database;
    const options = { url, version: "1", lease_ms: 6_000, sendsNotices: true, clock: systemClock, fatal: () => {} };
    const [firstNode, secondNode] = [
      await ShardsMember.join({ ...options, id: "a:1" }),
      await ShardsMember.join({ ...options, id: "b:1" }),
    ];
    const [store, otherStore] = [firstNode.openStore(), secondNode.openStore()];
    const received: string[] = [];
    store.onBroadcast((words) => received.push(...(words ? words.map(({ id }) => id) : ["everything"])));
    await using sql = new SQL(url, { max: 1 });
    const notifications: string[] = [];
    await sql.listen("slipway", (text) => void notifications.push(text));
    otherStore.broadcast("key_gone", "first", {});
    await until(() => received.includes("first") && notifications.some((text) => text.includes("first")));
    // Each node has renewed its lease several times since then.
    const listExpiries = async (): Promise<string[]> =>
      (await sql.unsafe("select expires_at::text as at from leases order by node")).map(({ at }: { at: string }) => at);
    for (let turns = 0; turns < 3; turns++) {
      const before = await listExpiries();
      await until(async () => (await listExpiries()).every((expiry, i) => expiry !== before[i]));
    }
    expect(notifications.filter((text) => !text.includes('"moves"')).length).toBe(1);

    // Simulates an event that was sent to a database which is not the primary any more.
    received.splice(0);
    Object.assign(otherStore.writer, { sentNotices: otherStore.writer.sentNotices + 1 });
    const isDoneTwice = (): boolean => received.filter((event) => event === "everything").length > 1;
    await until(isDoneTwice, { what: "a reload after the missed event, and another when it listens again" });
    otherStore.broadcast("key_gone", "second", {});
    await until(() => received.includes("second"));
    for (const openStore of [store, otherStore]) await openStore.close();
    for (const member of [secondNode, firstNode]) await member.leaveCluster();
  },
);
