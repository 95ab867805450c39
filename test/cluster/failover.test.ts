// The database's primary dies during writes, and its standby takes over: two real PostgreSQL servers with streaming replication, started by
// the test. Also checks that the oracle detects the losses of a wrong configuration.
import { afterEach, expect } from "bun:test";
import { SQL } from "bun";
import { findPrimary } from "#db/pg/find-primary.ts";
import { splitHosts } from "#db/pg/hosts.ts";
import { inspectPostgres } from "#db/pg/inspect.ts";
import { isStandbyMissing } from "#db/pg/lease.ts";
import { openPgStore, type PgStore } from "#db/pg/store.ts";
import { type PostgresPair, startPair } from "#test/support/cluster/postgres-pair.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";
import { checkWrites, type Outcome, type Row, type Write } from "../crash/cluster/cluster-oracle.ts";
import { insertSetting } from "../db/batches.ts";
import { awaitOutcome } from "../db/contract.ts";

const CLIENTS = 8;
const pairs: PostgresPair[] = [];
afterEach(async () => {
  for (const pair of pairs.splice(0)) await pair[Symbol.asyncDispose]();
});

const openPair = async (options: { synchronous?: boolean } = {}): Promise<PostgresPair> => {
  const pair = await startPair(options);
  pairs.push(pair);
  return pair;
};

const openStore = (url: string): Promise<PgStore> => openPgStore({ url, now: 0, fatal: () => {} });

/** Starts clients that write one row after the other, and record the results. */
const startWriting = (store: PgStore) => {
  const writes: Write[] = [];
  let isRunning = true;
  const runClient = async (n: number): Promise<void> => {
    for (let i = 0; isRunning; i++) {
      const name = `w-${n}-${i}`;
      const result = await awaitOutcome(store.commit([insertSetting({ key: name, value: "" })]));
      const outcome: Outcome = result === "done" ? "done" : result === "unknown" ? "unknown" : "refused";
      writes.push({ name, outcome });
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, n) => runClient(n)));
  const countAcknowledged = (): number => writes.filter(({ outcome }) => outcome === "done").length;
  return {
    writes,
    /** Resolves when `count` more writes were acknowledged. */
    waitForWrites: async (count: number): Promise<void> => {
      const target = countAcknowledged() + count;
      await until(() => countAcknowledged() >= target, { what: "writes to continue" });
    },
    stop: async (): Promise<void> => {
      isRunning = false;
      await clients;
    },
  };
};

const listRows = async (url: string): Promise<Row[]> => {
  await using sql = new SQL(url, { max: 1 });
  const rows = (await sql.unsafe("select key as name from settings where key like 'w-%'")) as { name: string }[];
  return rows.map(({ name }) => ({ name, epoch: 1 }));
};

testNeeding(
  [needs.postgres, needs.root],
  "[CL-13] when the killed primary's synchronous standby is promoted, no acknowledged write is lost, and the old primary acknowledges nothing",
  async () => {
    const pair = await openPair();
    const store = await openStore(pair.url);
    const load = startWriting(store);
    await load.waitForWrites(200);
    pair.primary.kill();
    await pair.standby.promote();
    await load.waitForWrites(200);
    await load.stop();
    expect(checkWrites(load.writes, await listRows(pair.standby.url()))).toEqual([]);
    await pair.primary.start();
    expect((await findPrimary(splitHosts(pair.url))).host).toBe(pair.standby.url());
    const oldPrimary = new SQL(pair.primary.url(), { max: 1 });
    let isAnswered = false;
    void oldPrimary.unsafe("insert into settings (key, value) values ('lost', '')").then(
      () => {
        isAnswered = true;
      },
      () => {},
    );
    await until(
      async () => (await pair.primary.query("select 1 from pg_stat_activity where wait_event = 'SyncRep'")).length > 0,
      { what: "the commit to wait for a standby" },
    );
    expect(isAnswered).toBe(false);
    void oldPrimary.close({ timeout: 0 });
    await store.close();
  },
);

testNeeding(
  [needs.postgres, needs.root],
  "[CL-13] with an asynchronous standby, acknowledged writes are lost, and the oracle detects it",
  async () => {
    const pair = await openPair({ synchronous: false });
    const store = await openStore(pair.url);
    await until(async () => (await pair.standby.query("select to_regclass('settings') as there"))[0] !== undefined);
    const load = startWriting(store);
    await load.waitForWrites(50);
    // Disconnects the standby, so that it falls behind.
    await pair.standby.query("alter system set primary_conninfo = ''");
    await pair.standby.query("select pg_reload_conf()");
    await until(async () => (await pair.primary.query("select 1 from pg_stat_replication")).length === 0, {
      what: "the standby to fall behind",
    });
    await load.waitForWrites(50);
    pair.primary.kill();
    await pair.standby.promote();
    await load.stop();
    const problems = checkWrites(load.writes, await listRows(pair.standby.url()));
    expect(problems.filter((problem) => problem.endsWith("was acknowledged, but is lost")).length).toBeGreaterThan(0);
    await store.close();
  },
);

testNeeding(
  [needs.postgres, needs.root],
  "[CL-14] while the synchronous standby is down, writes wait and the reason is reported; they are acknowledged when it returns",
  async () => {
    const pair = await openPair();
    const store = await openStore(pair.url);
    await store.commit([insertSetting({ key: "before", value: "" })]);
    pair.standby.kill();
    let isAcknowledged = false;
    const waiting = store.commit([insertSetting({ key: "waits", value: "" })]).then(() => {
      isAcknowledged = true;
    });
    const reportedView = await until(
      async () => {
        const { view } = await inspectPostgres(pair.url);
        return isStandbyMissing(view) && view;
      },
      { what: "the missing standby to be reported" },
    );
    expect(reportedView.standby).toEqual({ required: true, synchronous: 0 });
    expect(isAcknowledged).toBe(false);
    await pair.standby.start();
    await waiting;
    expect(isStandbyMissing((await inspectPostgres(pair.url)).view)).toBe(false);
    await store.close();
  },
);
