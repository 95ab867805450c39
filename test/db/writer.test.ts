// The writer of LocalStore: which batches share a commit, the limits of a group, and when the writer stops permanently.
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { LocalStore } from "#db/engine/local.ts";
import { Writer } from "#db/engine/writer.ts";
import { until } from "#test/support/until.ts";
import { insertSetting, listSettings } from "./batches.ts";
import { awaitOutcome } from "./contract.ts";
import { openIn, temporaryDirectory } from "./deployments.ts";

/** For test connections, which flush themselves. */
const flush = () => Promise.resolve();

describe("the group-committing writer", () => {
  let temp: ReturnType<typeof temporaryDirectory>;
  let store: LocalStore;
  let stopErrors: Error[];
  beforeEach(() => {
    temp = temporaryDirectory();
    stopErrors = [];
    store = openIn(temp.path, { fatal: (error) => stopErrors.push(error) });
  });
  afterEach(async () => {
    await store.close();
    temp[Symbol.dispose]();
  });
  const put = (key: string, value = "") => store.commit([insertSetting({ key, value })]);
  const putMany = (count: number, prefix: string) =>
    store.commit([insertSetting(Array.from({ length: count }, (_, i) => ({ key: `${prefix}${i}`, value: "" })))]);

  test("[ST-1] all batches of a turn share a commit, and those of the next turn have another one", async () => {
    await Promise.all(Array.from({ length: 100 }, (_, i) => put(`a${i}`)));
    expect(store.writer.counts).toEqual({ groups: 1, batches: 100, rows: 100 });
    await put("later");
    expect(store.writer.counts).toEqual({ groups: 2, batches: 101, rows: 101 });
  });

  test("[ST-1] a group ends at 500 rows, and the remaining batches follow in the next groups", async () => {
    await Promise.all([putMany(300, "a"), putMany(200, "b"), putMany(1, "c"), putMany(2_000, "d"), putMany(1, "e")]);
    expect(store.writer.counts).toEqual({ groups: 4, batches: 5, rows: 2_502 });
  });

  test("[ST-1] a group ends at 256 KiB", async () => {
    const big = "x".repeat(100 * 1024);
    await Promise.all(["a", "b", "c", "d"].map((key) => put(key, big)));
    expect(store.writer.counts.groups).toBe(2);
  });

  test("[ST-1] the event loop runs between two groups, so that other work is served", async () => {
    const events: string[] = [];
    const first = putMany(500, "a").then(() => events.push("first group"));
    const second = putMany(500, "b").then(() => events.push("second group"));
    setImmediate(() => events.push("somebody else"));
    await Promise.all([first, second]);
    expect(events.indexOf("somebody else")).toBeLessThan(events.indexOf("second group"));
    expect(events.indexOf("first group")).toBeLessThan(events.indexOf("second group"));
  });

  test("[ST-29] callers of a large group continue in slices, in order, and other work runs in between", async () => {
    const order: number[] = [];
    const turns = new Map<number, number>();
    let turn = 0;
    let isDone = false;
    const count = (): void => {
      turn += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        put(`s${i}`).then(() => {
          order.push(i);
          turns.set(turn, (turns.get(turn) ?? 0) + 1);
        }),
      ),
    );
    isDone = true;
    expect(store.writer.counts.groups).toBe(1);
    expect(order).toEqual(Array.from({ length: 60 }, (_, i) => i));
    expect(Math.max(...turns.values())).toBe(8);
    expect(turns.size).toBeGreaterThanOrEqual(8);
  });

  test("[ST-29] a store that closes answers all callers first", async () => {
    let answeredCount = 0;
    const commits = Array.from({ length: 100 }, (_, i) => put(`c${i}`).then(() => answeredCount++));
    await store.close();
    expect(answeredCount).toBe(100);
    await Promise.all(commits);
  });

  test("[ST-1] while a group is flushed the loop continues, and new batches form the next group", async () => {
    const db = new Database(join(temp.path, "slipway.db"));
    const epoch = db.query("select value from epoch").values()[0]?.[0] as number;
    const flushes: PromiseWithResolvers<void>[] = [];
    const slowFlush = (): Promise<void> => {
      const flushed = Promise.withResolvers<void>();
      flushes.push(flushed);
      return flushed.promise;
    };
    const writer = new Writer(db, { epoch, flush: slowFlush, committed: () => {}, fatal: () => {} });
    const written: string[] = [];
    const write = (key: string) => writer.submit([insertSetting({ key, value: "" })]).then(() => written.push(key));
    const first = write("a");
    await until(() => flushes.length === 1);
    const laterWrites = [write("b"), write("c")];
    await new Promise((resolve) => setImmediate(resolve));
    expect([written, flushes.length, db.query("select count(*) from settings").values()[0]?.[0]]).toEqual([[], 1, 1]);
    flushes[0]?.resolve();
    await first;
    await until(() => flushes.length === 2);
    expect(written).toEqual(["a"]);
    flushes[1]?.resolve();
    await Promise.all(laterWrites);
    expect([written, writer.counts.groups]).toEqual([["a", "b", "c"], 2]);
    await writer.stop();
    db.close();
  });

  test("[ST-16] [ST-26] when a flush fails, waiting callers fail, reads stop, and the process shuts down", async () => {
    const db = new Database(join(temp.path, "slipway.db"));
    const epoch = db.query("select value from epoch").values()[0]?.[0] as number;
    const failed = Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_FSYNC" });
    const fatalErrors: Error[] = [];
    const writer = new Writer(db, {
      epoch,
      flush: () => Promise.reject(failed),
      committed: () => {},
      fatal: (error) => fatalErrors.push(error),
    });
    expect(await awaitOutcome(writer.submit([insertSetting({ key: "a", value: "" })]))).toBe("unknown");
    expect(await awaitOutcome(writer.submit([insertSetting({ key: "b", value: "" })]))).toBe("closed");
    expect(fatalErrors).toEqual([failed]);
    await expect(writer.flushing).rejects.toThrow("disk I/O error");
    await writer.stop();
    db.close();
  });

  test("[ST-26] a read of data that is being flushed is answered after the flush", async () => {
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    // Until the Worker has started, the writer flushes itself.
    let count = 0;
    await until(async () => {
      count += 1;
      const write = put(`a${count}`);
      await turn();
      const isFlushing = store.writer.flushing !== undefined;
      await write;
      return isFlushing;
    });
    const order: string[] = [];
    const write = put("z").then(() => order.push("written"));
    await turn();
    const reads = [store.all(listSettings()), store.scan(listSettings()), store.get(listSettings())].map((read) =>
      read.then((rows) => order.push(`read ${Array.isArray(rows) ? rows.length : "one"}`)),
    );
    expect(store.writer.flushing).toBeInstanceOf(Promise);
    await Promise.all([write, ...reads]);
    expect(order[0]).toBe("written");
    expect(order.slice(1).sort()).toEqual([`read ${count + 1}`, `read ${count + 1}`, "read one"]);
  });

  test("[ST-6] when a batch resolves, another connection sees it", async () => {
    const otherConnection = new Database(join(temp.path, "slipway.db"), { readonly: true });
    await put("a");
    expect(otherConnection.query("select key from settings").values()).toEqual([["a"]]);
    otherConnection.close();
  });

  test("[ST-5] a writer that does not have the newest epoch writes nothing, rejects all waiting batches and stops", async () => {
    await put("mine");
    const otherConnection = new Database(join(temp.path, "slipway.db"));
    otherConnection.run("pragma busy_timeout=5000");
    otherConnection.run("update epoch set value = value + 1");
    const outcomes = await Promise.all([
      awaitOutcome(put("a")),
      awaitOutcome(put("b")),
      awaitOutcome(putMany(600, "next group ")),
    ]);
    expect(outcomes).toEqual(["closed", "closed", "closed"]);
    expect(stopErrors.map((stop) => stop.message)).toEqual(["another process owns this data directory (epoch 2)"]);
    expect(await awaitOutcome(put("later"))).toBe("closed");
    expect(otherConnection.query("select key from settings").values()).toEqual([["mine"]]);
    otherConnection.close();
  });

  test("[ST-10] while another program locks the database, batches wait and the loop continues; after the timeout they are refused", async () => {
    const file = join(temp.path, "slipway.db");
    const db = new Database(file);
    const epoch = db.query("select value from epoch").values()[0]?.[0] as number;
    const writer = new Writer(db, {
      epoch,
      heldMs: 50,
      flush,
      committed: () => {},
      fatal: (error) => stopErrors.push(error),
    });
    const otherConnection = new Database(file);
    otherConnection.run("begin immediate");
    // A batch of the store, which waits longer.
    const waiting = put("patient");
    const turns = Array.from({ length: 10 }, () => new Promise((resolve) => setImmediate(resolve)));
    await Promise.all(turns);
    expect(await awaitOutcome(writer.submit([insertSetting({ key: "a", value: "" })]))).toBe("overloaded");
    otherConnection.run("rollback");
    await waiting;
    expect(await awaitOutcome(writer.submit([insertSetting({ key: "b", value: "" })]))).toBe("done");
    expect((await store.all(listSettings())).map((row) => row.key).sort()).toEqual(["b", "patient"]);
    expect(stopErrors).toEqual([]);
    await writer.stop();
    otherConnection.close();
    db.close();
  });

  test("[ST-10] rows without values are counted too, so that every queue is bounded", async () => {
    const db = new Database(join(temp.path, "slipway.db"));
    const epoch = db.query("select value from epoch").values()[0]?.[0] as number;
    const writer = new Writer(db, { epoch, queueBytes: 100, flush, committed: () => {}, fatal: () => {} });
    const nothing = { sql: "delete from settings where false", rows: [[]] };
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => awaitOutcome(writer.submit([nothing]))));
    expect(outcomes).toEqual(["done", "done", "done", "overloaded", "overloaded"]);
    await writer.stop();
    db.close();
  });
});
