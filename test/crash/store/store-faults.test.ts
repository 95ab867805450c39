// The short form of the store's tests on failing disks; `bun run torture` has the long one.
import { describe, expect, test } from "bun:test";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findSetting, insertSetting } from "#test/db/batches.ts";
import { awaitOutcome } from "#test/db/contract.ts";
import { openIn } from "#test/db/deployments.ts";
import { faultSkipReason, mountSmallDisk, runWithFault, smallDiskSkipReason, storeFaults } from "./store-faults.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);
const faultsSkipReason = faultSkipReason();
const diskSkipReason = smallDiskSkipReason();
if (faultsSkipReason) process.stderr.write(`skipped, failing disk of the store: ${faultsSkipReason}\n`);
if (diskSkipReason) process.stderr.write(`skipped, full disk of the store: ${diskSkipReason}\n`);

describe.skipIf(faultsSkipReason !== "")("on a disk that fails", () => {
  test("[ST-16] after a single failed flush, the process stops with a code, and unconfirmed writes have an unknown result", async () => {
    const { run, oracle, problems, reasons } = await runWithFault("fsync:20:EIO:1");
    expect([run.code, oracle.fatal]).toEqual([70, "disk I/O error"]);
    expect(new Set(reasons).isSubsetOf(new Set(["unknown", "closed"]))).toBe(true);
    expect(problems).toEqual([]);
  });

  test("[ST-16] a rejected write is reported to its callers; reads and later writes still work", async () => {
    const { run, oracle, problems, reasons } = await runWithFault("write:60:EIO:1");
    expect(run.code).toBe(0);
    expect(oracle.fatal).toBe("");
    expect(reasons.every((reason) => reason === "unknown")).toBe(true);
    expect(problems).toEqual([]);
  });

  test("[ST-16] the second rejected write stops the process", async () => {
    const { run, oracle, problems } = await runWithFault("write:60:EIO:6");
    expect([run.code, oracle.fatal]).toEqual([70, "disk I/O error"]);
    expect(problems).toEqual([]);
  });

  test("[ST-16] on a full disk, writes are rejected as full, and continue once there is space", async () => {
    const { run, oracle, problems, reasons } = await runWithFault("write:60:ENOSPC:30");
    expect(run.code).toBe(0);
    expect(oracle.fatal).toBe("");
    expect([...new Set(reasons)]).toEqual(["full"]);
    expect(problems).toEqual([]);
  });

  test("[ST-16] a store on a full disk closes cleanly, and the next one reads its log", async () => {
    const { run, problems, reasons } = await runWithFault("write:40:ENOSPC");
    expect([run.code, run.errors.includes("SQLITE_FULL")]).toEqual([0, false]);
    expect([...new Set(reasons)]).toEqual(["full"]);
    expect(problems).toEqual([]);
  });

  test("[ST-16] a write that the system splits in two is complete", async () => {
    const { run, oracle, problems } = await runWithFault("write:10:SHORT:50");
    expect([run.code, oracle.refused]).toEqual([0, 0]);
    expect(problems).toEqual([]);
  });

  test(`[ST-16] no acknowledged write is lost, whatever fails at any time (seed ${SEED})`, async () => {
    expect(await storeFaults({ rounds: 3, seed: SEED, log: () => {} })).toContain("nothing acknowledged lost");
  });
});

describe.skipIf(diskSkipReason !== "")("on a full disk", () => {
  test("[ST-16] writes are rejected, reads work, and freed space is used without a restart", async () => {
    using disk = mountSmallDisk(8);
    const store = openIn(disk.path);
    const filler = join(disk.path, "filler");
    writeFileSync(filler, new Uint8Array(4 * 1024 * 1024));
    const put = (key: string) => awaitOutcome(store.commit([insertSetting({ key, value: "x".repeat(200_000) })]));
    let writtenCount = 0;
    while ((await put(`k${writtenCount}`)) === "done") writtenCount += 1;
    expect(writtenCount).toBeGreaterThan(0);
    expect(await put("still")).toBe("full");
    expect((await store.get(findSetting({ key: "k0" })))?.value).toHaveLength(200_000);
    expect(await store.scan({ sql: "select count(*) from settings", params: [], map: (row) => row[0] })).toEqual([
      writtenCount,
    ]);
    expect(existsSync(filler)).toBe(true);
    rmSync(filler);
    expect(await put("after")).toBe("done");
    expect(await store.get({ sql: "pragma integrity_check", params: [], map: (row) => row[0] })).toBe("ok");
    await store.close();
  });
});
