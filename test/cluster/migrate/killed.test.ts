// Migrations that are interrupted, at every failpoint and at random moments: the same command completes them.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { type Failpoint, MOVE_FAILPOINTS } from "#base/failpoint.ts";
import { openDatabase } from "#db/engine/open.ts";
import { copyIntoPostgres } from "#db/pg/copy-in.ts";
import { copyIntoSqlite } from "#db/pg/copy-out.ts";
import { runVerb } from "#test/cli/run-verb.ts";
import { SmallDisk, smallDiskSkipReason } from "#test/crash/disk/small-disk.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { randomFrom } from "#test/support/random.ts";
import { tempDirectory } from "#test/support/server.ts";
import { checksumTables, makeUsedDirectory, needsSqlite } from "./used-directory.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);
const needsSmallDisk = { found: smallDiskSkipReason() === "", reason: smallDiskSkipReason(), file: "" };
/**
 * The pass of each failpoint that ends the process: two uploads, the key and the database are renamed; in the last pass the key and
 * everything else have already been renamed.
 */
const PASSES: Record<(typeof MOVE_FAILPOINTS)[number], number[]> = {
  move_row: [1, 30],
  move_upload: [1, 2],
  move_name: [1, 2, 3, 4, 4],
};

type Move = {
  to: "sqlite" | "postgres";
  directory: string;
  url: string;
  key?: string;
  commandPrefix?: readonly string[];
};

const start = ({ to, directory, url, key, commandPrefix = [] }: Move, env: Record<string, string> = {}) =>
  Bun.spawn([...commandPrefix, ...toProgramCommand(), "migrate", "--to", to, "--data-dir", directory], {
    env: {
      PATH: process.env.PATH ?? "",
      HOME: tmpdir(),
      SLIPWAY_DATABASE_URL: url,
      ...(key === undefined ? {} : { SLIPWAY_ENCRYPTION_KEY: key }),
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });

const waitForExit = async (child: ReturnType<typeof start>) => {
  const [errors] = await Promise.all([child.stderr.text(), child.stdout.text(), child.exited]);
  return { exit: child.signalCode ?? child.exitCode, errors };
};

const findDatabaseFinding = async (directory: string) => {
  const { printed } = await runVerb(["doctor", "--quick", "--json", "--data-dir", directory]);
  const findings = JSON.parse(printed).findings as { name: string; status: string; detail: string }[];
  return findings.find(({ name }) => name === "database");
};

/** Checks that an incomplete data directory is rejected by every command that would use it. */
const expectUnfinished = async (directory: string): Promise<void> => {
  expect(readdirSync(directory)).not.toContain("slipway.db");
  expect(() => openDatabase(directory, { cacheMb: 1, now: 0 })).toThrow("has not ended");
  expect(await findDatabaseFinding(directory)).toMatchObject({
    status: "wrong",
    detail: expect.stringContaining("slipway migrate --to sqlite"),
  });
};

/** Creates a PostgreSQL database with a used installation, and summarizes its content. */
const makeUsedPostgres = async () => {
  const { directory } = await makeUsedDirectory();
  const database = await createDatabase();
  await copyIntoPostgres({ directory: directory.path, url: database.url, now: Date.now() });
  const key = readFileSync(join(directory.path, "encryption.key"), "utf8");
  const uploads = [...new Bun.Glob("??/*").scanSync(join(directory.path, "files"))].sort();
  expect(uploads).toHaveLength(2);
  return { directory, database, key, uploads, sums: checksumTables(directory.path) };
};

/** Checks that the directory has everything that the installation had. */
const expectMoved = (directory: string, { sums, key, uploads }: Awaited<ReturnType<typeof makeUsedPostgres>>): void => {
  expect(checksumTables(directory)).toEqual(sums);
  expect(readFileSync(join(directory, "encryption.key"), "utf8").trim()).toBe(key.trim());
  expect([...new Bun.Glob("??/*").scanSync(join(directory, "files"))].sort()).toEqual(uploads);
};

testNeeding(
  [needs.postgres, needsSqlite],
  "[CL-70] a migration into a data directory, killed at any failpoint, can be repeated; a server never uses an unfinished one",
  async () => {
    const used = await makeUsedPostgres();
    using _ = used.directory;
    using target = tempDirectory();
    await Bun.write(join(target.path, "mine.txt"), "mine");
    const move: Move = { to: "sqlite", directory: target.path, url: used.database.url, key: used.key.trim() };
    for (const point of MOVE_FAILPOINTS) {
      for (const [i, pass] of PASSES[point].entries()) {
        const failpoint = `${point satisfies Failpoint}:${pass}`;
        expect([failpoint, (await waitForExit(start(move, { SLIPWAY_FAILPOINT: failpoint }))).exit]).toEqual([
          failpoint,
          "SIGKILL",
        ]);
        if (point !== "move_name" || i < 4) await expectUnfinished(target.path);
      }
    }
    expect((await findDatabaseFinding(target.path))?.status).toBe("ok");
    expectMoved(target.path, used);
    expect(readFileSync(join(target.path, "mine.txt"), "utf8")).toBe("mine");
    const repeated = await waitForExit(start(move));
    expect([repeated.exit, repeated.errors]).toEqual([1, expect.stringContaining("holds a database already")]);
    expectMoved(target.path, used);
    await used.database.remove();
  },
);

testNeeding(
  [needs.postgres, needsSqlite],
  `[CL-70] killed at random moments, migrations in both directions are completed by the next run (seed ${SEED})`,
  async () => {
    const random = randomFrom(SEED);
    const used = await makeUsedPostgres();
    using _ = used.directory;
    using target = tempDirectory();
    const empty = await createDatabase();
    const moves: Move[] = [
      { to: "sqlite", directory: target.path, url: used.database.url, key: used.key.trim() },
      { to: "postgres", directory: used.directory.path, url: empty.url },
    ];
    for (const move of moves) {
      for (let kill = 0; kill < 3; kill++) {
        const child = start(move);
        const timer = systemClock.after(random() * 1500, () => child.kill("SIGKILL"));
        await waitForExit(child);
        timer.cancel();
      }
      const lastRun = await waitForExit(start(move));
      // The killed run may have been complete.
      if (lastRun.exit !== 0) expect(lastRun.errors).toMatch(/holds (a database|an installation) already/);
    }
    expectMoved(target.path, used);
    using copy = tempDirectory();
    await copyIntoSqlite({ directory: copy.path, url: empty.url, now: Date.now(), key: used.key });
    expectMoved(copy.path, used);
    await Promise.all([used.database.remove(), empty.remove()]);
  },
);

testNeeding(
  [needs.postgres, needsSqlite, needsSmallDisk],
  "[CL-70] a migration that is stopped, or has no disk space, leaves the directory unchanged",
  async () => {
    const used = await makeUsedPostgres();
    using _ = used.directory;
    using target = tempDirectory();
    const directory = join(target.path, "data");
    const stop = new AbortController();
    const stopped = copyIntoSqlite({
      directory,
      url: used.database.url,
      now: Date.now(),
      signal: stop.signal,
      onTable: () => stop.abort(new Error("enough")),
    });
    await expect(stopped).rejects.toThrow("enough");
    expect(readdirSync(directory)).toEqual(["lock"]);

    await using disk = await SmallDisk.mount(directory, 2);
    const move: Move = {
      to: "sqlite",
      directory,
      url: used.database.url,
      key: used.key.trim(),
      commandPrefix: disk.commandPrefix,
    };
    const failed = await waitForExit(start(move));
    expect([failed.exit, failed.errors]).toEqual([1, expect.stringMatching(/disk is full|ENOSPC/)]);
    expect(existsSync(disk.path(".moving"))).toBe(false);
    const larger = Bun.spawn([...disk.commandPrefix, "mount", "-o", "remount,size=64m", directory]);
    expect(await larger.exited).toBe(0);
    expect((await waitForExit(start(move))).exit).toBe(0);
    expect(readdirSync(disk.path(".")).sort()).toEqual(["encryption.key", "files", "lock", "slipway.db"]);
    await used.database.remove();
  },
);

test("[CL-70] a server does not start on an unfinished migration", async () => {
  using temp = tempDirectory();
  mkdirSync(join(temp.path, ".moving"));
  const served = await runVerb(["serve", "--address", "127.0.0.1:0", "--data-dir", temp.path]);
  expect([served.code, served.errors]).toEqual([1, expect.stringContaining("has not ended")]);
  expect(readdirSync(temp.path)).toEqual([".moving"]);
});
