// The store on a real PostgreSQL: requirements of the database, its tables, and that only one node writes.
import { afterEach, describe, expect } from "bun:test";
import { SQL } from "bun";
import { DatabaseVersionError } from "#db/engine/migration.ts";
import { UnsafeDatabaseError } from "#db/engine/unsafe.ts";
import { PG_MIGRATIONS } from "#db/pg/migrations.ts";
import { PgReports } from "#db/pg/reports.ts";
import { openPgStore, type PgStore } from "#db/pg/store.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { until } from "#test/support/until.ts";
import { changeSetting, findSetting, insertSetting, listSettings } from "../batches.ts";
import { awaitOutcome } from "../contract.ts";

const databases: TestDatabase[] = [];
const stores: PgStore[] = [];
const createTestDatabase = async (options = {}): Promise<TestDatabase> => {
  const created = await createDatabase(options);
  databases.push(created);
  return created;
};
const open = async (url: string, fatal = (_: Error): void => {}): Promise<PgStore> => {
  const store = await openPgStore({ url, now: 0, fatal });
  stores.push(store);
  return store;
};
const querySql = async (url: string, text: string) => {
  await using sql = new SQL(url, { max: 1 });
  return await sql.unsafe(text);
};
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close().catch(() => {});
  for (const testDatabase of databases.splice(0)) await testDatabase.remove();
});

describe("migrations", () => {
  testNeeding(
    [needs.postgres],
    "[PQ-3] migrations are applied once, even if several nodes start at the same time",
    async () => {
      const { url } = await createTestDatabase({ empty: true });
      await Promise.all([open(url), open(url), open(url)]);
      const rows = await querySql(url, "select version, name from migrations order by version");
      expect(rows.map(({ name }: { name: string }) => name)).toEqual(PG_MIGRATIONS.map(({ name }) => name));
    },
  );

  testNeeding(
    [needs.postgres],
    "[PQ-3] a database with migrations of a newer version is refused and not changed",
    async () => {
      const { url } = await createTestDatabase();
      await querySql(url, "insert into migrations (version, name, applied_at) values (9999, 'later', 0)");
      expect(await open(url).catch((error) => error)).toBeInstanceOf(DatabaseVersionError);
    },
  );
});

describe("unsafe databases", () => {
  testNeeding(
    [needs.postgres],
    "[PQ-4] a database that acknowledges a commit before it is on disk is refused",
    async () => {
      const { url } = await createTestDatabase();
      await querySql(url, `alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = off`);
      const error = await open(url).catch((refusal) => refusal);
      expect(error).toBeInstanceOf(UnsafeDatabaseError);
      expect(error.message).toContain("synchronous_commit is off");
    },
  );

  testNeeding([needs.postgres], "[PQ-4] a database with another sort order is refused", async () => {
    const name = `${new URL((await createTestDatabase()).url).pathname.slice(1)}_sorted`;
    await querySql(needs.postgres.file, `create database ${name} template template0 encoding 'utf8' locale 'C.UTF-8'`);
    const url = new URL(needs.postgres.file);
    url.pathname = `/${name}`;
    const error = await open(url.href).catch((refusal) => refusal);
    await querySql(needs.postgres.file, `drop database ${name} with (force)`);
    expect(error.message).toContain("its collation is C.UTF-8");
  });
});

testNeeding([needs.postgres], "[PQ-7] the database assigns a number to each row that has none", async () => {
  const store = await open((await createTestDatabase()).url);
  const sql = "insert into usage_keys (key, kind, name) values (?, ?, ?)";
  // A few rows are sent one by one, many rows as arrays.
  for (const count of [2, 20]) {
    await store.commit([{ sql, rows: Array.from({ length: count }, (_, i) => [null, 0, `${count}-${i}`]) }]);
  }
  const keys = await store.all({ sql: "select key from usage_keys order by key", params: [], map: ([key]) => key });
  expect(keys).toEqual(Array.from({ length: 22 }, (_, i) => i + 1));
});

testNeeding(
  [needs.postgres],
  "[PQ-8] a transaction that the database aborted before its commit is retried",
  async () => {
    const { url } = await createTestDatabase();
    const store = await open(url);
    await using sql = new SQL(url, { max: 1 });
    await sql.unsafe("create sequence refusals");
    for (const [n, state] of ["25P03", "40001", "40P01"].entries()) {
      // A rollback does not reset a sequence, so only the first attempt gets the error.
      await sql.unsafe(`create or replace function refuse_once() returns trigger language plpgsql as $$ begin
      if nextval('refusals') = 1 then raise exception 'given up' using errcode = '${state}'; end if; return new; end $$`);
      if (n === 0) {
        await sql.unsafe("create trigger refuse before insert on settings for each row execute function refuse_once()");
      }
      await sql.unsafe("alter sequence refusals restart");
      const before = store.writer.counts.repeats;
      await store.commit([insertSetting({ key: state, value: "" })]);
      // A busy database may also reject the commit for its own reasons.
      expect(store.writer.counts.repeats).toBeGreaterThan(before);
    }
    await sql.close();
    expect((await store.all(listSettings())).map(({ key }) => key)).toEqual(["25P03", "40001", "40P01"]);
  },
);

describe("two nodes on one database", () => {
  testNeeding(
    [needs.postgres],
    "[PQ-5] the older one is fenced: its next write is refused and it must stop",
    async () => {
      const { url } = await createTestDatabase();
      const fatal: Error[] = [];
      const older = await open(url, (error) => fatal.push(error));
      await older.commit([insertSetting({ key: "before", value: "" })]);
      const newer = await open(url);
      const outcomes = await Promise.all(
        ["a", "b"].map((key) => awaitOutcome(older.commit([insertSetting({ key, value: "" })]))),
      );
      expect(outcomes).toEqual(["closed", "closed"]);
      expect(fatal.map(({ message }) => message)).toEqual(["another node has taken over"]);
      await newer.commit([insertSetting({ key: "after", value: "" })]);
      expect((await newer.all(listSettings())).map(({ key }) => key)).toEqual(["after", "before"]);
    },
  );

  testNeeding(
    [needs.postgres],
    "[PQ-6] a broken connection loses no acknowledged write, and writes continue",
    async () => {
      const created = await createTestDatabase();
      const store = await open(created.url);
      const acknowledged: string[] = [];
      let isWriting = true;
      const writing = (async () => {
        for (let i = 0; isWriting; i++) {
          const key = `k${i}`;
          if ((await awaitOutcome(store.commit([insertSetting({ key, value: "" })]))) === "done")
            acknowledged.push(key);
        }
      })();
      for (let cut = 0; cut < 3; cut++) {
        const acknowledgedBefore = acknowledged.length;
        await created.cutConnections();
        await until(() => acknowledged.length >= acknowledgedBefore + 5);
      }
      isWriting = false;
      await writing;
      const storedKeys = new Set((await store.all(listSettings())).map(({ key }) => key));
      expect(acknowledged.filter((key) => !storedKeys.has(key))).toEqual([]);
    },
  );
});

testNeeding(
  [needs.postgres],
  "[PQ-17] a read after a connection was given up sees the write that was in progress on it",
  async () => {
    const { url } = await createTestDatabase();
    const store = await open(url);
    await store.commit([insertSetting({ key: "kept", value: "before" })]);
    await using sql = new SQL(url, { max: 2 });
    // Makes the COMMIT take long, as on a busy disk or without a standby.
    await sql.unsafe(`create function wait_long() returns trigger language plpgsql as
        $$ begin perform pg_advisory_xact_lock(17); return null; end $$;
      create constraint trigger wait_long after update on settings deferrable initially deferred
        for each row execute function wait_long()`);
    const holder = await sql.reserve();
    await holder.unsafe("select pg_advisory_lock(17)");
    const writing = awaitOutcome(store.commit([changeSetting("kept", { value: "after" })]));
    const locked = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    await until(async () => (await sql.unsafe(locked)).length > 0, { what: "the commit to wait" });
    store.reconnect();
    expect(await writing).toBe("unknown");
    let isRead = false;
    const reading = store.get(findSetting({ key: "kept" })).finally(() => {
      isRead = true;
    });
    const terminations =
      "select 1 from pg_stat_activity where pid <> pg_backend_pid() and query like '%pg_terminate_backend%'";
    await until(async () => isRead || (await sql.unsafe(terminations)).length > 0, {
      what: "the read to be done, or to wait",
    });
    await holder.unsafe("select pg_advisory_unlock(17)");
    holder.release();
    expect((await reading)?.value).toBe("after");
  },
);

testNeeding([needs.postgres], "[PQ-10] a read whose connection breaks is retried", async () => {
  const created = await createTestDatabase();
  const store = await open(created.url);
  const slowRead = { sql: "select 7 from pg_sleep(1)", params: [], map: ([seven]: unknown[]) => seven };
  const reading = Promise.all([store.get(slowRead), store.get(slowRead)]);
  const sleepingQuery = "select 1 from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
  await until(async () => (await querySql(created.url, sleepingQuery)).length === 2);
  await created.cutConnections();
  expect(await reading).toEqual([7, 7]);
});

testNeeding(
  [needs.postgres],
  "[PQ-9] at most two reports run concurrently, even when one arrives while a slot is being passed on",
  async () => {
    const { url } = await createTestDatabase();
    await open(url);
    await using sql = new SQL(url, { max: 8 });
    const lateReports: Promise<string>[] = [];
    let runningCount = 0;
    let maxRunning = 0;
    const readers = {
      async reserve() {
        maxRunning = Math.max(maxRunning, ++runningCount);
        const connection = await sql.reserve();
        const release = (): void => {
          runningCount--;
          connection.release();
          if (lateReports.length === 0) queueMicrotask(() => lateReports.push(runReport()));
        };
        return { unsafe: connection.unsafe.bind(connection), release };
      },
    } as unknown as SQL;
    const reports = new PgReports();
    const search = JSON.stringify({ filter: {}, limit: 10 });
    const runReport = () => reports.run(readers, "audit", search);
    const results = await Promise.all(Array.from({ length: 6 }, runReport));
    results.push(...(await Promise.all(lateReports)));
    expect(results).toHaveLength(7);
    expect(results).toEqual(results.map(() => JSON.stringify({ keys: [], count: 0 })));
    expect([maxRunning, runningCount]).toEqual([2, 0]);
  },
);
