// The guarantees of every implementation of `Store`, as one suite. A deployment provides a location on disk, on which the tests open one
// store after another. `crash` kills the process that owns the location.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError, type SequenceName, type Store } from "#db/engine/store.ts";
import {
  changeSetting,
  deleteSetting,
  findSetting,
  insertSetting,
  insertUser,
  listSettings,
  makeUser,
  swapSetting,
  upsertSetting,
} from "./batches.ts";

export type Deployment = {
  /** Opens a store; `queueBytes` limits its queue. */
  open(options?: { queueBytes?: number }): Promise<Store>;
  /** Kills the location's owner immediately, like `kill -9`. Stores that were opened before cannot be used after that. */
  crash(): Promise<void>;
  remove(): Promise<void>;
};

/** Returns why a commit was rejected, or "done". */
export const awaitOutcome = (commit: Promise<void>): Promise<string> =>
  commit.then(
    () => "done",
    (error) => (error instanceof CommitError ? error.reason : `not a CommitError: ${error}`),
  );

export const describeStoreContract = (name: string, deploy: () => Promise<Deployment>): void =>
  describe(`the store's contract, kept by ${name}`, () => {
    let deployment: Deployment;
    let store: Store;
    beforeEach(async () => {
      deployment = await deploy();
      store = await deployment.open();
    });
    afterEach(async () => {
      await store.close();
      await deployment.remove();
    });
    const listKeys = async (): Promise<string[]> => (await store.all(listSettings())).map((row) => row.key);
    const getSetting = async (key: string) => (await store.get(findSetting({ key })))?.value;

    test("[ST-8] a commit that resolved is read by get, all and scan", async () => {
      await store.commit([insertSetting({ key: "a", value: "1" })]);
      expect(await store.get(findSetting({ key: "a" }))).toEqual({ key: "a", value: "1" });
      expect(await store.get(findSetting({ key: "b" }))).toBeUndefined();
      expect(await store.all(listSettings())).toEqual([{ key: "a", value: "1" }]);
      expect(await store.scan(listSettings())).toEqual([{ key: "a", value: "1" }]);
    });

    test("[ST-2] a batch is written completely or not at all", async () => {
      await store.commit([insertSetting({ key: "taken", value: "" })]);
      const batch = [
        upsertSetting([
          { key: "x", value: "1" },
          { key: "y", value: "2" },
        ]),
        insertSetting({ key: "taken", value: "again" }),
      ];
      expect(await awaitOutcome(store.commit(batch))).toBe("constraint");
      expect(await listKeys()).toEqual(["taken"]);
    });

    test("[ST-2] a rejected batch does not affect batches submitted at the same time", async () => {
      await store.commit([insertSetting({ key: "taken", value: "" })]);
      const outcomes = await Promise.all([
        awaitOutcome(store.commit([insertSetting({ key: "before", value: "" })])),
        awaitOutcome(
          store.commit([insertSetting({ key: "half", value: "" }), insertSetting({ key: "taken", value: "" })]),
        ),
        awaitOutcome(store.commit([changeSetting("missing", { value: "" }, { expect: 1 })])),
        awaitOutcome(store.commit([insertSetting({ key: "after", value: "" })])),
      ]);
      expect(outcomes).toEqual(["done", "constraint", "stale", "done"]);
      expect(await listKeys()).toEqual(["after", "before", "taken"]);
    });

    test("[ST-2] only the batch of a statement that cannot be run is rejected", async () => {
      const invalid: Statement = { sql: "insert into no_such_table values (?)", rows: [[1]] };
      const outcomes = await Promise.all([
        awaitOutcome(store.commit([insertSetting({ key: "before", value: "" })])),
        awaitOutcome(store.commit([insertSetting({ key: "half", value: "" }), invalid])),
        awaitOutcome(store.commit([insertSetting({ key: "after", value: "" })])),
      ]);
      expect(outcomes).toEqual(["done", "unknown", "done"]);
      expect(await listKeys()).toEqual(["after", "before"]);
    });

    test("[ST-3] a guard that does not change exactly the expected rows rejects the whole batch as stale", async () => {
      await store.commit([insertSetting({ key: "turn", value: "1" })]);
      const swap = swapSetting({ key: "turn", from: "1", to: "2" });
      expect(await awaitOutcome(store.commit([upsertSetting({ key: "note", value: "first" }), swap]))).toBe("done");
      expect(await awaitOutcome(store.commit([upsertSetting({ key: "note", value: "second" }), swap]))).toBe("stale");
      expect([await getSetting("turn"), await getSetting("note")]).toEqual(["2", "first"]);
    });

    test("[ST-3] of two changes that start from the same state, only one is written", async () => {
      await store.commit([insertSetting({ key: "turn", value: "1" })]);
      const outcomes = await Promise.all(
        ["a", "b", "c"].map((to) => awaitOutcome(store.commit([swapSetting({ key: "turn", from: "1", to })]))),
      );
      expect(outcomes).toEqual(["done", "stale", "stale"]);
      expect(await getSetting("turn")).toBe("a");
    });

    test("[ST-3] a guard applies to each row of its statement", async () => {
      await store.commit([insertSetting(["a", "b"].map((key) => ({ key, value: "1" })))]);
      const bothRows = swapSetting(["a", "b"].map((key) => ({ key, from: "1", to: "2" })));
      const oneMissing = swapSetting(["a", "c"].map((key) => ({ key, from: "2", to: "3" })));
      expect(await awaitOutcome(store.commit([bothRows]))).toBe("done");
      expect(await awaitOutcome(store.commit([oneMissing]))).toBe("stale");
      expect([await getSetting("a"), await getSetting("b")]).toEqual(["2", "2"]);
    });

    test("[ST-4] a violated unique constraint rejects the batch, and the error names the columns or the index", async () => {
      await store.commit([insertUser(makeUser("ada"))]);
      const sameKey = await store.commit([insertUser({ ...makeUser("bob"), id: "id-of-ada" })]).catch((error) => error);
      const sameName = await store
        .commit([insertUser({ ...makeUser("ADA"), id: "other", email: "" })])
        .catch((error) => error);
      expect([sameKey.reason, sameKey.constraint]).toEqual(["constraint", "users.id"]);
      expect([sameName.reason, sameName.constraint]).toEqual(["constraint", "users_username"]);
    });

    test("[ST-7] a caller's commits happen in the order in which it submitted them", async () => {
      await store.commit([insertSetting({ key: "turn", value: "0" })]);
      const settled: number[] = [];
      await Promise.all(
        Array.from({ length: 40 }, async (_, i) => {
          // Stale unless the previous one was written first.
          await store.commit([swapSetting({ key: "turn", from: String(i), to: String(i + 1) })]);
          settled.push(i);
        }),
      );
      expect(await getSetting("turn")).toBe("40");
      expect(settled).toEqual(settled.toSorted((a, b) => a - b));
    });

    test("[ST-25] a rejected caller reads the data that the winner has written", async () => {
      const values = await Promise.all(
        ["a", "b", "c"].map(async (value) => {
          const outcome = await awaitOutcome(store.commit([insertSetting({ key: "won", value })]));
          return outcome === "done" ? value : `${outcome} ${await getSetting("won")}`;
        }),
      );
      expect(values).toEqual(["a", "constraint a", "constraint a"]);
    });

    test("[ST-9] an empty batch, and one whose statements have no rows, resolve and write nothing", async () => {
      await store.commit([]);
      await store.commit([insertSetting([])]);
      expect(await listKeys()).toEqual([]);
    });

    test("[ST-9] every kind of value is read as it was written", async () => {
      const bytes = new Uint8Array([0, 1, 255]);
      const values = ["", "é😀x", 0, -1, 2 ** 52, 0.1, null, bytes];
      await store.commit([insertSetting({ key: "k", value: "v" })]);
      const read = { sql: `select ${values.map(() => "?").join(", ")}`, params: values, map: (row: unknown[]) => row };
      expect(await store.get(read)).toEqual(values);
      expect((await store.scan(read))[0]).toEqual(values);
    });

    test("[ST-10] a full queue refuses new batches as overloaded and writes the queued ones", async () => {
      await store.close();
      store = await deployment.open({ queueBytes: 10_000 });
      const big = "x".repeat(4_000);
      const outcomes = await Promise.all(
        ["a", "b", "c", "d"].map((key) => awaitOutcome(store.commit([insertSetting({ key, value: big })]))),
      );
      expect(outcomes).toEqual(["done", "done", "overloaded", "overloaded"]);
      expect(await awaitOutcome(store.commit([insertSetting({ key: "e", value: big })]))).toBe("done");
      expect(await listKeys()).toEqual(["a", "b", "e"]);
    });

    test("[ST-11] closing waits for the batches that were submitted, and refuses later ones", async () => {
      await store.reserve("jobs", 1);
      const waiting = ["a", "b", "c"].map((key) => awaitOutcome(store.commit([insertSetting({ key, value: "" })])));
      const closing = store.close();
      expect(await awaitOutcome(store.commit([insertSetting({ key: "late", value: "" })]))).toBe("closed");
      expect(await awaitOutcome(store.commit([]))).toBe("closed");
      await closing;
      expect(await Promise.all(waiting)).toEqual(["done", "done", "done"]);
      expect(await awaitOutcome(store.get(findSetting({ key: "a" })).then(() => {}))).toBe("closed");
      expect(await awaitOutcome(store.scan(listSettings()).then(() => {}))).toBe("closed");
      expect(await awaitOutcome(store.reserve("jobs", 1).then(() => {}))).toBe("closed");
      store = await deployment.open();
      expect(await listKeys()).toEqual(["a", "b", "c"]);
    });

    test("[ST-12] numbers ascend, belong to one caller, and are never assigned again, even after a restart or a crash", async () => {
      const lastNumbers = new Map<SequenceName, number>();
      const reserve = async (sequence: SequenceName, count: number) => {
        const firstNumber = await store.reserve(sequence, count);
        expect(firstNumber).toBeGreaterThan(lastNumbers.get(sequence) ?? 0);
        lastNumbers.set(sequence, firstNumber + count - 1);
        return firstNumber;
      };
      const firsts = await Promise.all([1, 2, 3].map((count) => reserve("agent_logs", count)));
      expect(firsts).toEqual([1, 2, 4]);
      expect(await reserve("jobs", 1)).toBe(1);
      // Concurrently: more numbers than the store reserves in advance, and a few that it has reserved.
      await Promise.all([reserve("agent_logs", 100_000), store.reserve("messages", 5), reserve("jobs", 7)]);
      await store.close();
      store = await deployment.open();
      await reserve("agent_logs", 10);
      await reserve("jobs", 10);
      await deployment.crash();
      store = await deployment.open();
      await reserve("agent_logs", 10);
      await reserve("jobs", 10);
      expect(await store.reserve("jobs", 0).catch((error) => error)).toBeInstanceOf(RangeError);
    });

    test("[ST-5] each opened store has a higher epoch than all before it", async () => {
      const firstEpoch = store.epoch;
      await store.close();
      store = await deployment.open();
      expect(store.epoch).toBeGreaterThan(firstEpoch);
      const secondEpoch = store.epoch;
      await deployment.crash();
      store = await deployment.open();
      expect(store.epoch).toBeGreaterThan(secondEpoch);
    });

    test("[ST-6] acknowledged writes survive a crash", async () => {
      await store.commit([insertSetting({ key: "kept", value: "" }), insertSetting({ key: "gone", value: "" })]);
      await store.commit([deleteSetting("gone")]);
      await deployment.crash();
      store = await deployment.open();
      expect(await listKeys()).toEqual(["kept"]);
    });
  });
