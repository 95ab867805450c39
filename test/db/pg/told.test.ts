// What a node that writes tells the others: by the commit it belongs to, whatever becomes of the connection.
import { afterEach, expect } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { Primary } from "#db/pg/primary.ts";
import { openPgStore } from "#db/pg/store.ts";
import { Listener } from "#db/pg/told/listener.ts";
import type { Notice } from "#db/pg/told/notice.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { until } from "#test/support/until.ts";
import { outcomeOf } from "../contract.ts";

let database: TestDatabase | undefined;
afterEach(() => database?.remove());

/** Writes a setting, as something that the audit log tells. */
const audited = (key: string, expect?: number) => ({
  sql: "insert into settings (key, value) select ?, '1' where not exists (select 1 from settings where key = ?)",
  rows: [[key, key]],
  touches: ["audit"] as const,
  ...(expect === undefined ? {} : { expect }),
});

testNeeding(
  [needs.postgres],
  "[PQ-12] a group tells once, one that was refused tells nothing, and what was told while the connection broke is told again",
  async () => {
    database = await createDatabase();
    const { url } = database;
    const store = await openPgStore({ url, now: 0, tells: true, fatal: () => {} });
    const primary = new Primary(url);
    const heard: Notice[] = [];
    const listener = new Listener({ primary, clock: systemClock, hear: (notice) => heard.push(notice) });
    const words = (): string[] => heard.flatMap((notice) => (notice.words ?? []).map(({ id }) => id));
    await until(() => heard.some(({ all }) => all), { what: "everything at the beginning" });
    // The first of an epoch may follow on some that were missed.
    store.tell("key_gone", "first", {});
    await until(() => heard.some(({ epoch }) => epoch === store.epoch));
    heard.splice(0);

    await Promise.all(["a", "b", "c"].map((key) => store.commit([audited(key, 1)])));
    expect(await outcomeOf(store.commit([audited("a", 1)]))).toBe("stale");
    store.tell("key_gone", "one", {});
    store.tell("access_changed", "two", {});
    await until(() => words().length >= 2);
    expect(heard).toEqual([
      { epoch: store.epoch, audit: true },
      {
        epoch: store.epoch,
        words: [
          { kind: "key_gone", id: "one", event: {} },
          { kind: "access_changed", id: "two", event: {} },
        ],
      },
    ]);

    heard.splice(0);
    await database.cutConnections();
    store.tell("key_gone", "three", {});
    // Whoever listens was cut off, too: it hears the word, or that it may have missed some.
    await until(() => words().includes("three") || heard.some(({ all }) => all));
    await listener.close();
    await primary.close();
    await store.close();
  },
  30_000,
);
