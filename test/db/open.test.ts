// Opening a data directory: which process may open it, the settings of the connection, and the state after an earlier owner.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { chmodSync, statSync } from "node:fs";
import { join } from "node:path";
import { LockedError } from "#base/lock-file.ts";
import { lockDirectory } from "#db/engine/lock.ts";
import { openDatabase } from "#db/engine/open.ts";
import { openIn, temporaryDirectory } from "./deployments.ts";

const OPTIONS = { cacheMb: 8, now: 1_700_000_000_000 };

/** Starts another process that opens this directory and reports the result. Kill it, or close its input to end it. */
const startOpener = async (directory: string) => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "opener.ts"), directory], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  return { child, output: new TextDecoder().decode(value).trim() };
};

describe("a data directory", () => {
  test("[ST-15] a second process is rejected with the directory's name", async () => {
    using temp = temporaryDirectory();
    const { db, unlock } = openDatabase(temp.path, OPTIONS);
    const rejected = await startOpener(temp.path);
    expect(rejected.output).toBe(`LockedError: the data directory ${temp.path} is in use by another Slipway process`);
    await rejected.child.exited;
    db.close();
    unlock();
    const second = await startOpener(temp.path);
    expect(second.output).toBe("opened");
    second.child.stdin.end();
    expect(await second.child.exited).toBe(0);
  });

  test("[ST-15] the lock is released as soon as its owner is killed", async () => {
    using temp = temporaryDirectory();
    const owner = await startOpener(temp.path);
    expect(owner.output).toBe("opened");
    expect(() => openDatabase(temp.path, OPTIONS)).toThrow(LockedError);
    owner.child.kill("SIGKILL");
    await owner.child.exited;
    await openIn(temp.path).close();
  });

  test("[ST-15] a suspended process still owns the directory", async () => {
    using temp = temporaryDirectory();
    const owner = await startOpener(temp.path);
    owner.child.kill("SIGSTOP");
    expect(() => openDatabase(temp.path, OPTIONS)).toThrow(LockedError);
    owner.child.kill("SIGKILL");
    await owner.child.exited;
  });

  test("[ST-15] another lock failure is not reported as a second process", async () => {
    using temp = temporaryDirectory();
    await Bun.write(
      join(temp.path, "lock"),
      "this is not a database, and it is longer than the header of one".repeat(20),
    );
    expect(() => lockDirectory(temp.path)).toThrow("file is not a database");
  });

  test("[ST-16] commits are flushed: write-ahead log, synchronous=FULL, checkpoints left to the Worker", () => {
    using temp = temporaryDirectory();
    const { db, unlock } = openDatabase(temp.path, OPTIONS);
    const pragma = (name: string) => db.query(`pragma ${name}`).values()[0]?.[0];
    expect(["journal_mode", "synchronous", "foreign_keys", "wal_autocheckpoint", "cache_size"].map(pragma)).toEqual([
      "wal",
      2,
      1,
      0,
      -8192,
    ]);
    db.close();
    unlock();
  });

  test("[ST-15] other users cannot read the database, even if the directory's permissions allow them in", async () => {
    using temp = temporaryDirectory();
    chmodSync(temp.path, 0o755);
    const store = openIn(temp.path);
    await store.commit([{ sql: "insert into settings values ('a', '')", rows: [[]] }]);
    for (const name of ["slipway.db", "slipway.db-wal", "slipway.db-shm"]) {
      expect(statSync(join(temp.path, name)).mode & 0o777).toBe(0o600);
    }
    await store.close();
  });

  test("[ST-11] after closing, the database is one file that contains everything", async () => {
    using temp = temporaryDirectory();
    const store = openIn(temp.path);
    await store.commit([{ sql: "insert into settings values ('a', '')", rows: [[]] }]);
    await store.close();
    expect(await Bun.file(join(temp.path, "slipway.db-wal")).exists()).toBe(false);
    const reopened = new Database(join(temp.path, "slipway.db"));
    expect(reopened.query("select key from settings").values()).toEqual([["a"]]);
    reopened.close();
  });
});
