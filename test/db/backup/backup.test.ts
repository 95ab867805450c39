// Backups and restores of a data directory: their content, what is rejected, and scheduled backups.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { openEncryption } from "#base/encryption.ts";
import { makeBackup } from "#db/backup/backup.ts";
import { removeLeftovers } from "#db/backup/backup-folder.ts";
import { Flow } from "#db/backup/flow.ts";
import { BackupError, MANIFEST, toBackupName } from "#db/backup/manifest.ts";
import { restoreBackup } from "#db/backup/restore.ts";
import { ScheduledBackups } from "#db/backup/schedule.ts";
import { Blobs } from "#db/blobs.ts";
import type { LocalStore } from "#db/engine/local.ts";
import { insertInto } from "#db/engine/sql.ts";
import { settings } from "#db/schema/core.ts";
import { insertFile } from "#db/templates/files.ts";
import { insertUser } from "#db/users/users.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { openIn, temporaryDirectory } from "../deployments.ts";

const insertSetting = insertInto(settings);
const signal = new AbortController().signal;
const flow = () => new Flow(systemClock, 0, signal);

let temp: ReturnType<typeof temporaryDirectory>;
let data: string;
let store: LocalStore;
let uploaded: string;

beforeEach(async () => {
  temp = temporaryDirectory();
  data = join(temp.path, "data");
  mkdirSync(data);
  store = openIn(data);
  openEncryption(data);
  const blobs = new Blobs(data);
  await blobs.recover(new Set());
  const bytes = new TextEncoder().encode("uploaded");
  const { hash } = await blobs.put([bytes] as never);
  uploaded = `files/${hash.slice(0, 2)}/${hash}`;
  const times = { created_at: 0, updated_at: 0 };
  const account = { status: "active" as const, login_type: "none", roles: [], ...times };
  const user = insertUser({ id: "u", email: "u@example.com", username: "u", ...account });
  const file = { id: crypto.randomUUID(), hash, mimetype: "application/x-tar", size: bytes.byteLength };
  await store.commit([
    user,
    insertSetting({ key: "one", value: "1" }),
    insertFile({ ...file, created_by: "u", created_at: 0 }),
  ]);
});

afterEach(async () => {
  await store.close();
  temp[Symbol.dispose]();
});

const runBackup = (target: string, clock = systemClock) =>
  makeBackup({ data_dir: data, target: join(temp.path, target), clock, rateMb: 0, signal });

const catchError = (work: Promise<unknown>): Promise<unknown> =>
  work.then(() => undefined).catch((error: unknown) => error);

/** Returns the value of the row `one` in a restored folder. */
const readValue = async (directory: string): Promise<string> => {
  const restored = openIn(directory);
  try {
    const map = (row: readonly unknown[]) => String(row[0]);
    return (await restored.get({ sql: "select value from settings where key = 'one'", params: [], map })) ?? "";
  } finally {
    await restored.close();
  }
};

describe("a backup", () => {
  test.each(["backups", "one.tar"])(
    "[OP-1] [OP-2] created in %s contains database, uploads and key, readable by one user only",
    async (target) => {
      const { path, manifest } = await runBackup(target);
      expect(manifest.files.map((file) => file.path)).toEqual(["slipway.db", uploaded, "encryption.key"]);
      expect(statSync(path).mode & 0o077).toBe(0);
      const restored = join(temp.path, "restored");
      await restoreBackup(path, restored, flow());
      expect(await readValue(restored)).toBe("1");
      expect(readFileSync(join(restored, uploaded), "utf8")).toBe("uploaded");
      expect(readFileSync(join(restored, "encryption.key"))).toEqual(readFileSync(join(data, "encryption.key")));
      expect(statSync(join(restored, "encryption.key")).mode & 0o777).toBe(0o600);
      expect(statSync(restored).mode & 0o777).toBe(0o700);
    },
  );

  test("[OP-1] as a .tar file can be read by other programs", async () => {
    const { path } = await runBackup("one.tar");
    const files = await new Bun.Archive(await Bun.file(path).bytes()).files();
    expect([...files.keys()].sort()).toEqual(["encryption.key", uploaded, MANIFEST, "slipway.db"].sort());
  });

  test("[OP-1] [OP-3] contains no later write, never replaces another, and leaves nothing behind when it fails", async () => {
    const { path } = await runBackup("one.tar");
    await store.commit([{ sql: "update settings set value = '2' where key = 'one'", rows: [[]] }]);
    expect(String(await catchError(runBackup("one.tar")))).toContain("exists already");
    await restoreBackup(path, join(temp.path, "restored"), flow());
    expect(await readValue(join(temp.path, "restored"))).toBe("1");
    rmSync(join(data, uploaded));
    expect(await catchError(runBackup("backups"))).toBeInstanceOf(BackupError);
    expect(readdirSync(join(temp.path, "backups"))).toEqual([]);
    expect(readdirSync(join(data, "backups"))).toEqual([]);
  });

  test("[OP-3] is refused without a database", async () => {
    rmSync(join(temp.path, "nothing"), { force: true, recursive: true });
    const options = { data_dir: join(temp.path, "nothing"), target: join(temp.path, "backups"), clock: systemClock };
    const rejected = await catchError(makeBackup({ ...options, rateMb: 0, signal }));
    expect(String(rejected)).toContain("there is no database");
    expect(existsSync(join(temp.path, "nothing"))).toBe(false);
  });

  test("[OP-5] is written at most at the configured rate", async () => {
    const waits: number[] = [];
    const clock = {
      ...systemClock,
      monotonic: () => 0,
      after: (ms: number, run: () => void) => {
        waits.push(ms);
        queueMicrotask(run);
        return { cancel: () => {} };
      },
    };
    const slow = new Flow(clock, 1, signal);
    await slow.throttle(512 * 1024);
    await slow.throttle(512 * 1024);
    expect(waits).toEqual([500, 1000]);
    const stopping = new AbortController();
    stopping.abort(new Error("stop"));
    expect(String(await catchError(new Flow(clock, 1, stopping.signal).throttle(1)))).toContain("stop");
  });
});

describe("a restore", () => {
  test("[OP-3] restores only into an empty folder, and cleans up after an interrupted attempt", async () => {
    const { path } = await runBackup("backups");
    expect(String(await catchError(restoreBackup(path, data, flow())))).toContain("is not empty");
    const parent = restoreBackup(join(temp.path, "backups"), join(temp.path, "restored"), flow());
    expect(String(await catchError(parent))).toContain(`name one, such as ${path}`);
    const restored = join(temp.path, "restored");
    // The state after a kill while files were renamed. The database is the last of them.
    for (const folder of [".restore", "files/ab"]) mkdirSync(join(restored, folder), { recursive: true });
    for (const file of [".restore/slipway.db", "encryption.key"]) writeFileSync(join(restored, file), "half");
    await restoreBackup(path, restored, flow());
    expect(await readValue(restored)).toBe("1");
    expect(readdirSync(restored)).not.toContain(".restore");
  });

  const damages: [string, (path: string) => void, string][] = [
    ["a changed file", (path) => writeFileSync(join(path, "slipway.db"), "other"), "does not have the checksum"],
    ["a file that is missing", (path) => rmSync(join(path, "encryption.key")), "encryption.key is missing"],
    ["no manifest", (path) => rmSync(join(path, MANIFEST)), "is not a backup"],
    ["half a manifest", (path) => writeFileSync(join(path, MANIFEST), '{"format":1'), "is damaged"],
    [
      "a path outside of the folder",
      (path) => change(path, (text) => text.replace("encryption.key", "../escaped")),
      "is damaged",
    ],
    [
      "a newer program's schema",
      (path) => change(path, (text) => text.replace(/("schema": \{\s+"version": )\d+/, "$19999")),
      "made by a newer",
    ],
    ["a newer format", (path) => change(path, (text) => text.replace('"format": 1', '"format": 2')), "made by a newer"],
  ];
  const change = (path: string, edit: (text: string) => string): void =>
    writeFileSync(join(path, MANIFEST), edit(readFileSync(join(path, MANIFEST), "utf8")));

  test.each(damages)("[OP-3] of %s is refused and leaves nothing behind", async (_what, damage, expected) => {
    const { path } = await runBackup("backups");
    damage(path);
    const existing = join(temp.path, "there");
    mkdirSync(existing);
    for (const target of [join(temp.path, "not/yet/there"), existing]) {
      const rejected = await catchError(restoreBackup(path, target, flow()));
      expect(rejected).toBeInstanceOf(BackupError);
      expect(String(rejected)).toContain(expected);
    }
    expect(existsSync(join(temp.path, "not"))).toBe(false);
    expect(readdirSync(existing)).toEqual([]);
  });

  test("[OP-3] of a damaged database with correct checksums is refused", async () => {
    const { path } = await runBackup("backups");
    const file = join(path, "slipway.db");
    const bytes = readFileSync(file);
    bytes.fill(0xff, 8192, 20_000);
    writeFileSync(file, bytes);
    const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
    change(path, (text) =>
      text.replace(/("path": "slipway.db",\s+"bytes": \d+,\s+"sha256": ")[0-9a-f]+/, `$1${sha256}`),
    );
    expect(String(await catchError(restoreBackup(path, join(temp.path, "restored"), flow())))).toContain("is damaged");
  });

  test("[OP-3] of a truncated or altered .tar is refused", async () => {
    const { path } = await runBackup("one.tar");
    const bytes = readFileSync(path);
    for (const cut of [0, 100, 512, 5000, bytes.length - 1500]) {
      writeFileSync(path, bytes.subarray(0, cut));
      expect(await catchError(restoreBackup(path, join(temp.path, "restored"), flow()))).toBeInstanceOf(BackupError);
    }
    const altered = Buffer.from(bytes);
    altered[0] = 0x2f;
    writeFileSync(path, altered);
    expect(String(await catchError(restoreBackup(path, join(temp.path, "restored"), flow())))).toContain("or no tar");
  });
});

describe("scheduled backups", () => {
  const HOUR = 3_600_000;

  const schedule = (clock: ManualClock, fails: () => boolean = () => false) => {
    const folder = join(temp.path, "scheduled");
    const makeBackupNow = () =>
      makeBackup({
        data_dir: data,
        target: folder,
        clock: { ...systemClock, now: () => clock.now() },
        rateMb: 0,
        signal,
      });
    const backups = new ScheduledBackups({
      clock,
      data_dir: data,
      folder,
      interval: 6 * HOUR,
      keep: 2,
      rateMb: 0,
      async make() {
        if (fails()) throw new Error("no space");
        await makeBackupNow();
      },
    });
    /** Advances the clock and waits until the due backup is complete, which is when the next one is scheduled. */
    const advance = async (ms: number, next = 6 * HOUR): Promise<void> => {
      clock.advance(ms);
      await clock.timerIn(next);
    };
    const listNames = () => (existsSync(folder) ? readdirSync(folder).sort() : []);
    return { backups, makeBackupNow, advance, listNames, folder };
  };

  test("[OP-5] run at each interval, and keep the newest backups and all other files", async () => {
    const clock = new ManualClock();
    const { backups, advance, listNames, folder } = schedule(clock);
    mkdirSync(folder);
    writeFileSync(join(folder, "notes.txt"), "mine");
    await backups.start();
    const times: number[] = [];
    for (const wait of [0, 6 * HOUR, 6 * HOUR]) {
      await advance(wait);
      times.push(clock.now());
    }
    expect(listNames()).toEqual(["notes.txt", ...times.slice(1).map(toBackupName)]);
    await backups.stop();
  });

  test("[OP-5] count the interval from the newest backup, and retry a failed backup soon", async () => {
    const clock = new ManualClock();
    let isBroken = false;
    const { backups, makeBackupNow, advance, listNames } = schedule(clock, () => isBroken);
    await makeBackupNow();
    await backups.start();
    clock.advance(5 * HOUR);
    expect(listNames()).toHaveLength(1);
    isBroken = true;
    await advance(HOUR, 600_000);
    expect(backups.failures).toBe(1);
    isBroken = false;
    await advance(600_000);
    expect(listNames()).toHaveLength(2);
    await backups.stop();
  });

  test("[OP-5] are not delayed by a damaged backup, one with a date in the future, or an unreadable folder", async () => {
    const clock = new ManualClock();
    const { backups, advance, listNames, folder } = schedule(clock);
    const damaged = toBackupName(clock.now() - HOUR);
    const futureDated = toBackupName(clock.now() + 1000 * HOUR);
    for (const name of [damaged, futureDated]) mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, damaged, MANIFEST), "{");
    writeFileSync(join(folder, futureDated, MANIFEST), "{}");
    await backups.start();
    await advance(0);
    expect(listNames()).toContain(damaged);
    await advance(6 * HOUR);
    // The damaged one does not count among the two that are kept; one with another time is left alone.
    expect(listNames()).toEqual([toBackupName(clock.now() - 6 * HOUR), toBackupName(clock.now()), futureDated]);
    await backups.stop();
    rmSync(folder, { recursive: true });
    writeFileSync(folder, "no folder");
    const unreadable = schedule(clock);
    await unreadable.backups.start();
    await unreadable.advance(0, 600_000);
    expect(unreadable.backups.failures).toBe(1);
    await unreadable.backups.stop();
  });

  test("[OP-5] delete the leftovers of a backup that was killed", async () => {
    const folder = join(temp.path, "scheduled");
    const half = `.${toBackupName(0)}.part`;
    const leftovers = [join(folder, half), join(folder, `${half}.tar`), join(data, "backups", `${half}-pins`)];
    const now = systemClock.now();
    const old = now / 1000 - 90_000;
    for (const path of leftovers) mkdirSync(path, { recursive: true });
    for (const path of leftovers) utimesSync(path, old, old);
    mkdirSync(join(folder, `.${toBackupName(now)}.part`));
    await removeLeftovers([folder, join(data, "backups"), join(temp.path, "missing")], now);
    expect(leftovers.filter((path) => existsSync(path))).toEqual([]);
    expect(readdirSync(folder)).toHaveLength(1);
  });

  test("[OP-5] run in separate processes, which a stop ends", async () => {
    const folder = join(temp.path, "scheduled");
    const clock = new ManualClock();
    const backups = new ScheduledBackups({ clock, data_dir: data, folder, interval: HOUR, keep: 2, rateMb: 0 });
    await backups.start();
    clock.advance(0);
    await clock.timerIn(HOUR);
    expect(backups.failures).toBe(0);
    expect(readdirSync(folder).filter((name) => name.startsWith("slipway-"))).toHaveLength(1);
    clock.advance(HOUR);
    await backups.stop();
    expect(backups.failures).toBe(0);
    await backups.start();
    clock.advance(HOUR);
    await backups.stop();
  });
});
