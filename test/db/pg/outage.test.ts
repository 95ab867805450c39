// The database is unavailable: stopped, paused, or behind a connection that has gone silent. Waiting requests are answered in time, and
// what was rejected is never written.
import { afterEach, expect } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { ClusterNode } from "#db/pg/node.ts";
import { Primary } from "#db/pg/primary.ts";
import { ShardsMember } from "#db/pg/shards/member.ts";
import { openPgStore, type PgStore } from "#db/pg/store.ts";
import { explainReason } from "#src/cli/reason.ts";
import { type PostgresServer, startSingle } from "#test/support/cluster/postgres-pair.ts";
import { startSilentProxy } from "#test/support/cluster/silent-proxy.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { until } from "#test/support/until.ts";
import { findSetting, insertSetting, listSettings } from "../batches.ts";
import { awaitOutcome } from "../contract.ts";

const COMMIT_TIMEOUT_MS = 1500;
const LEASE_MS = 2000;
/** Additional time for a busy machine. */
const TOLERANCE_MS = 6000;
const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const startServer = async (): Promise<PostgresServer> => {
  const single = await startSingle();
  cleanups.push(async () => single[Symbol.asyncDispose]());
  return single.server;
};

const openStore = async (url: string): Promise<PgStore> => {
  const store = await openPgStore({ url, now: 0, wait_ms: COMMIT_TIMEOUT_MS, fatal: () => {} });
  cleanups.push(() => store.close());
  return store;
};

const write = (store: PgStore, key: string): Promise<string> =>
  awaitOutcome(store.commit([insertSetting({ key, value: "" })]));
const read = (store: PgStore): Promise<string> =>
  awaitOutcome(store.get(findSetting({ key: "before" })).then(() => {}));

/** Returns the outcomes, and the time until the last one. */
const measureOutcomes = async (
  requests: readonly Promise<string>[],
): Promise<{ outcomes: string[]; tookMs: number }> => {
  const startedAt = performance.now();
  return { outcomes: await Promise.all(requests), tookMs: performance.now() - startedAt };
};

/** Waits until writes succeed again. Batches are written in order, so all earlier ones are settled then. Returns the written keys. */
const listKeysAfterwards = async (store: PgStore): Promise<string[]> => {
  let attempts = 0;
  await until(async () => (await write(store, `after-${attempts++}`)) === "done", { what: "writes to continue" });
  const keys = (await store.all(listSettings())).map(({ key }) => key);
  return keys.filter((key) => !key.startsWith("after-"));
};

testNeeding(
  [needs.postgres, needs.root],
  "[PQ-30] while the database is down, requests are refused in time and never executed, except those still waiting when it returns",
  async () => {
    const server = await startServer();
    const store = await openStore(server.url());
    expect(await write(store, "before")).toBe("done");
    server.kill();
    await until(async () => (await write(store, "first")) === "unreachable", { what: "the outage to be noticed" });
    const { outcomes, tookMs } = await measureOutcomes([write(store, "a"), read(store), write(store, "b")]);
    expect(outcomes).toEqual(["unreachable", "unreachable", "unreachable"]);
    expect(tookMs).toBeLessThan(COMMIT_TIMEOUT_MS + TOLERANCE_MS);
    await server.start();
    expect((await listKeysAfterwards(store)).filter((key) => key !== "first")).toEqual(["before"]);

    const waitingStore = await openPgStore({ url: server.url(), now: 0, fatal: () => {} });
    cleanups.push(() => waitingStore.close());
    server.kill();
    // Waits until no statement is in flight.
    waitingStore.reconnect();
    const waiting = [write(waitingStore, "c"), read(waitingStore)];
    await server.start();
    expect(await Promise.all(waiting)).toEqual(["done", "done"]);
  },
);

testNeeding(
  [needs.postgres, needs.root],
  "[PQ-30] [PQ-31] while the database is paused, a sent write's outcome is unknown, and queued requests are refused and never executed",
  async () => {
    const server = await startServer();
    const store = await openStore(server.url());
    expect(await write(store, "before")).toBe("done");
    server.signal("SIGSTOP");
    const sent = write(store, "sent");
    await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
    const { outcomes, tookMs } = await measureOutcomes([
      sent,
      write(store, "behind"),
      read(store),
      write(store, "too"),
    ]);
    expect(outcomes).toEqual(["unknown", "unreachable", "unreachable", "unreachable"]);
    expect(tookMs).toBeLessThan(COMMIT_TIMEOUT_MS + TOLERANCE_MS);
    const later = await measureOutcomes([write(store, "later"), read(store)]);
    expect(later.outcomes).toEqual(["unreachable", "unreachable"]);
    expect(later.tookMs).toBeLessThan(COMMIT_TIMEOUT_MS + TOLERANCE_MS);
    server.signal("SIGCONT");
    const keys = await listKeysAfterwards(store);
    expect(keys.filter((key) => key !== "sent")).toEqual(["before"]);
  },
);

testNeeding(
  [needs.postgres],
  "[PQ-31] a silent connection is given up: its write's outcome is unknown, and later requests use a new connection",
  async () => {
    const database = await createDatabase();
    cleanups.push(() => database.remove());
    using proxy = startSilentProxy(new URL(database.url));
    const store = await openStore(proxy.url);
    expect([await write(store, "before"), await read(store)]).toEqual(["done", "done"]);
    proxy.silence();
    const { outcomes, tookMs } = await measureOutcomes([write(store, "lost"), read(store)]);
    expect(outcomes[0]).toBe("unknown");
    expect(tookMs).toBeLessThan(COMMIT_TIMEOUT_MS + TOLERANCE_MS);
    expect(await listKeysAfterwards(store)).toEqual(["before"]);
    expect(await read(store)).toBe("done");
    await store.close();
  },
);

for (const kind of [ClusterNode, ShardsMember])
  testNeeding(
    [needs.postgres, needs.root],
    `[PQ-32] a ${kind.name} with an expired lease refuses unsent writes and reads, and continues when the database is back`,
    async () => {
      const server = await startServer();
      const fatal: string[] = [];
      const options = {
        url: server.url(),
        id: "a:1",
        version: "1",
        lease_ms: LEASE_MS,
        clock: systemClock,
        fatal: (error: Error) => fatal.push(error.message),
      };
      const node = await kind.join(options);
      cleanups.push(() => node.leaveCluster());
      if (node instanceof ClusterNode) await node.whenActive();
      const store = node.openStore();
      cleanups.push(() => store.close());
      expect(await write(store, "before")).toBe("done");
      server.signal("SIGSTOP");
      const sent = write(store, "sent");
      await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
      const { outcomes, tookMs } = await measureOutcomes([sent, write(store, "behind"), read(store)]);
      expect(outcomes).toEqual(["unknown", "unreachable", "unreachable"]);
      expect(node.serves_ms).toBeLessThan(1);
      expect(tookMs).toBeLessThan(LEASE_MS + TOLERANCE_MS);
      server.signal("SIGCONT");
      await until(() => node.serves_ms > 0, { what: "the lease to be renewed" });
      expect(
        (await listKeysAfterwards(store)).filter((key) => !["sent", "encryption_key_fingerprint"].includes(key)),
      ).toEqual(["before"]);
      expect(fatal).toEqual([]);
    },
  );

testNeeding([], "[CL-12] a start without its database explains the problem", async () => {
  const nowhere = new Primary("postgres://user@127.0.0.1:1/nowhere", { wait_ms: 300 });
  const error = await nowhere.writer().catch((refusal) => refusal);
  await nowhere.close();
  expect(explainReason(error, { address: { host: "127.0.0.1", port: 1 } } as never)).toBe(
    "no primary of the database answers",
  );
});
