// The store of home backups without a server: real restic, a real S3 server, real files.
import { expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chooseOutdated } from "#actors/home-backups/retention.ts";
import { systemClock } from "#base/clock.ts";
import { loadConfig } from "#base/config.ts";
import { uuid } from "#base/ids.ts";
import { extract } from "#src/home-backups/extract.ts";
import { HomeBackupStore, type Manifest } from "#src/home-backups/store.ts";
import { ACCESS_KEY, BUCKET, REGION, SECRET_KEY, startObjectStore } from "#test/support/cluster/object-store.ts";
import { type Need, needs, testNeeding } from "#test/support/needs.ts";
import { describeTree, makeOddTree } from "#test/support/odd-tree.ts";
import { startS3Server } from "#test/support/s3-server.ts";
import { tempDirectory } from "#test/support/server.ts";

const KEY = "11111111-2222-4333-8444-555555555555";
const OTHER_KEY = "99999999-2222-4333-8444-555555555555";
const signal = new AbortController().signal;
const WORKSPACE = uuid();

const openStore = (settings: Record<string, string>, recovery_key = KEY): HomeBackupStore => {
  const env = { SLIPWAY_BACKUP_RATE_MB: "0", ...settings };
  const { config } = loadConfig({ argv: [], env, readFile: () => "" });
  const store = HomeBackupStore.open({ config, clock: systemClock, path: Bun.env.PATH, recovery_key });
  if (!store) throw new Error("no location is set");
  return store;
};

async function* pack(folder: string): AsyncGenerator<Uint8Array> {
  const child = Bun.spawn(["tar", "--sparse", "-C", folder, "-cf", "-", "."], { stdout: "pipe" });
  yield* child.stdout as AsyncIterable<Uint8Array>;
}

async function* packAndFail(folder: string): AsyncGenerator<Uint8Array> {
  yield* pack(folder);
  throw new Error("the disk has failed");
}

const writeBackup = (
  store: HomeBackupStore,
  stream: AsyncIterable<Uint8Array>,
  base?: string,
  fields: object = {},
): Promise<Manifest> =>
  store.write(
    {
      id: uuid(),
      workspace_id: WORKSPACE,
      workspace_name: "dev",
      owner_name: "ada",
      provisioner: "local",
      volumes: [],
      created_at: Date.now(),
      stream,
      ...fields,
    },
    base,
    signal,
  );

/** Returns the paths of all files below a folder. */
const listFiles = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
  );

const checkRestore = async (settings: Record<string, string>, location: string): Promise<void> => {
  using home = tempDirectory();
  using restoreTarget = tempDirectory();
  makeOddTree(home.path);
  const store = openStore(settings);
  const firstBackup = await writeBackup(store, pack(home.path));
  writeFileSync(join(home.path, "later"), "more");
  const nextBackup = await writeBackup(store, pack(home.path), firstBackup.id);
  expect(firstBackup.bytes).toBeGreaterThan(3_000_000);
  expect(nextBackup.added_bytes).toBeLessThan(firstBackup.added_bytes + 1_500_000);

  const otherMachine = openStore(settings);
  const [newest, older] = await otherMachine.list();
  expect([newest?.id, older?.id]).toEqual([nextBackup.id, firstBackup.id]);
  if (!newest) throw new Error("nothing is listed");
  const restoredFolder = join(restoreTarget.path, "restored");
  await extract(otherMachine.read(newest, signal), restoredFolder);
  expect(describeTree(restoredFolder)).toEqual(describeTree(home.path));
  expect(statSync(join(restoredFolder, "sparse")).blocks).toBeLessThan(1_000);

  // Neither contents nor names are readable in the repository.
  for (const file of listFiles(location)) {
    const text = readFileSync(file).toString("latin1");
    expect(text.includes("#!/bin/sh")).toBe(false);
    expect(text.includes("dangling")).toBe(false);
  }

  await store.remove(WORKSPACE, [firstBackup.id], signal);
  await store.verify(WORKSPACE, nextBackup.id, signal);
  await expect(store.verify(WORKSPACE, firstBackup.id, signal)).rejects.toThrow("The backup is missing");

  await expect(openStore(settings, OTHER_KEY).list()).rejects.toThrow("another recovery key");
  await expect(openStore(settings, OTHER_KEY).remove(WORKSPACE, [uuid()], signal)).rejects.toThrow(
    "another recovery key",
  );
  await store.verify(WORKSPACE, nextBackup.id, signal);

  await store.remove(WORKSPACE, [nextBackup.id], signal);
  expect(listFiles(location)).toEqual([]);
};

testNeeding(
  [needs.root],
  "[HB-15] unpacking creates no device and no setuid program, and the folder is private",
  async () => {
    using home = tempDirectory();
    using restoreTarget = tempDirectory();
    mkdirSync(join(home.path, "in"));
    Bun.spawnSync(["mknod", "-m", "666", join(home.path, "in/disk"), "b", "7", "0"]);
    writeFileSync(join(home.path, "in/run"), "#!/bin/sh\n");
    chmodSync(join(home.path, "in/run"), 0o6755);
    chmodSync(home.path, 0o755);
    const restoredFolder = join(restoreTarget.path, "restored");
    await extract(pack(home.path), restoredFolder);
    expect(readdirSync(join(restoredFolder, "in"))).toEqual(["run"]);
    expect([restoredFolder, join(restoredFolder, "in/run")].map((path) => statSync(path).mode & 0o7777)).toEqual([
      0o700, 0o755,
    ]);
  },
);

const ENGINES: readonly { readonly engine: string; readonly needed: readonly Need[] }[] = [
  { engine: "restic", needed: [needs.restic] },
  { engine: "archive", needed: [] },
];

for (const { engine, needed } of ENGINES) {
  const settings = { SLIPWAY_HOME_BACKUP_ENGINE: engine };
  testNeeding(
    [...needed, needs.versitygw],
    `[HB-1][HB-2][HB-3][HB-7] a backup made by ${engine} is restored from S3 on a second machine with equal checksums`,
    async () => {
      await using server = await startS3Server();
      await checkRestore({ ...server.settings, ...settings }, server.folder);
    },
  );

  testNeeding(
    needed,
    `[HB-4][HB-5] a backup by ${engine} that is interrupted is not listed; an altered backup is detected, and none of its files are restored`,
    async () => {
      using temp = tempDirectory();
      using home = tempDirectory();
      makeOddTree(home.path);
      const store = openStore({ SLIPWAY_HOME_BACKUP_DIR: temp.path, ...settings });
      await expect(writeBackup(store, packAndFail(home.path))).rejects.toThrow("the disk has failed");
      expect(await store.list()).toEqual([]);
      const backup = await writeBackup(store, pack(home.path));
      const largest = listFiles(temp.path).toSorted((a, b) => statSync(b).size - statSync(a).size)[0] ?? "";
      const altered = readFileSync(largest);
      altered.writeUInt8(altered.readUInt8(1_000) ^ 1, 1_000);
      rmSync(largest);
      // restic waits a quarter of an hour for missing files.
      const damages = engine === "restic" ? [altered] : [undefined, altered];
      for (const damage of damages) {
        if (damage) writeFileSync(largest, damage, { mode: 0o600 });
        const error = await store.verify(WORKSPACE, backup.id, signal).catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ name: "HomeBackupError", isDamage: true });
      }
      const restoredFolder = join(home.path, "restored");
      await expect(extract(store.read(backup, signal), restoredFolder)).rejects.toThrow();
      expect(existsSync(restoredFolder) || existsSync(`${restoredFolder}.part`)).toBe(false);
    },
  );
}

test("[HB-1][HB-2][HB-3][HB-7] a backup without restic is restored from a folder", async () => {
  using temp = tempDirectory();
  await checkRestore({ SLIPWAY_HOME_BACKUP_DIR: temp.path, SLIPWAY_HOME_BACKUP_ENGINE: "archive" }, temp.path);
});

test("[HB-2][HB-4] an unchanged home adds almost no data, an inserted byte adds little, and a damaged backup is never a base", async () => {
  using temp = tempDirectory();
  using home = tempDirectory();
  const parts = Array.from({ length: 256 }, () => crypto.getRandomValues(new Uint8Array(65_536)));
  writeFileSync(join(home.path, "data"), Buffer.concat(parts));
  const store = openStore({ SLIPWAY_HOME_BACKUP_DIR: temp.path, SLIPWAY_HOME_BACKUP_ENGINE: "archive" });
  const firstBackup = await writeBackup(store, pack(home.path));
  expect(firstBackup.bytes).toBeGreaterThan(16_000_000);
  const unchanged = await writeBackup(store, pack(home.path), firstBackup.id);
  expect(unchanged.added_bytes).toBe(0);
  writeFileSync(join(home.path, "data"), Buffer.concat([Buffer.from("x"), ...parts]));
  const shifted = await writeBackup(store, pack(home.path), unchanged.id);
  expect(shifted.added_bytes).toBeLessThan(firstBackup.added_bytes / 2);
  const withoutBase = await writeBackup(store, pack(home.path));
  expect(withoutBase.added_bytes).toBeGreaterThan(firstBackup.added_bytes / 2);
});

test("[HB-6] errors of the bucket are explained with the names of the settings, and a transient error is retried", async () => {
  await using server = startObjectStore();
  using home = tempDirectory();
  makeOddTree(home.path);
  const store = openStore({
    SLIPWAY_HOME_BACKUP_ENGINE: "archive",
    SLIPWAY_HOME_BACKUP_S3_ENDPOINT: server.url,
    SLIPWAY_HOME_BACKUP_S3_BUCKET: BUCKET,
    SLIPWAY_HOME_BACKUP_S3_REGION: REGION,
    SLIPWAY_HOME_BACKUP_S3_ACCESS_KEY: ACCESS_KEY,
    SLIPWAY_HOME_BACKUP_S3_SECRET_KEY: SECRET_KEY,
  });
  server.inject(() => server.toErrorResponse(403, "InvalidAccessKeyId"));
  await expect(writeBackup(store, pack(home.path))).rejects.toThrow("home_backup_s3_access_key is not known there");
  server.inject(() => server.toErrorResponse(503, "SlowDown"));
  await expect(writeBackup(store, pack(home.path))).rejects.toThrow("cannot be used");
  expect([...server.objects.keys()]).toEqual([]);
  let failures = 0;
  server.inject((request) =>
    request.method !== "PUT" || failures++ > 2 ? undefined : server.toErrorResponse(503, "SlowDown"),
  );
  const backup = await writeBackup(store, pack(home.path));
  await store.verify(WORKSPACE, backup.id, signal);
});

testNeeding(
  [needs.root],
  "[HB-5][HB-6] a full folder is explained, and partial data is not listed as a backup",
  async () => {
    using parent = tempDirectory();
    using home = tempDirectory();
    makeOddTree(home.path, 1_000_000);
    writeFileSync(join(home.path, "random"), crypto.getRandomValues(new Uint8Array(65_536)).toBase64());
    const folder = join(parent.path, "small");
    mkdirSync(folder);
    if (Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]).exitCode !== 0) return;
    try {
      const store = openStore({ SLIPWAY_HOME_BACKUP_DIR: folder, SLIPWAY_HOME_BACKUP_ENGINE: "archive" });
      await expect(writeBackup(store, pack(home.path))).rejects.toThrow("there is no space left");
      expect(await store.list()).toEqual([]);
    } finally {
      Bun.spawnSync(["umount", folder]);
    }
  },
);

test("[HB-8] contradictory settings, and a program that is not restic, are refused", async () => {
  const getConfigError = (env: Record<string, string>): string => {
    try {
      loadConfig({ argv: [], env, readFile: () => "" });
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };
  const bucket = {
    SLIPWAY_HOME_BACKUP_S3_BUCKET: "homes",
    SLIPWAY_HOME_BACKUP_S3_ACCESS_KEY: "a",
    SLIPWAY_HOME_BACKUP_S3_SECRET_KEY: "b",
  };
  expect(getConfigError(bucket)).toBe("");
  expect(getConfigError({ SLIPWAY_HOME_BACKUP_INTERVAL: "1d" })).toContain("home_backup_dir or home_backup_s3_bucket");
  expect(getConfigError({ ...bucket, SLIPWAY_HOME_BACKUP_DIR: "/b" })).toContain("set only one");
  expect(getConfigError({ SLIPWAY_HOME_BACKUP_S3_BUCKET: "homes" })).toContain("need all of");
  expect(getConfigError({ SLIPWAY_HOME_BACKUP_RECOVERY_KEY: "short" })).toContain("32 hexadecimal digits");
  expect(getConfigError({ SLIPWAY_HOME_BACKUP_ENGINE: "archive", SLIPWAY_HOME_BACKUP_RESTIC: "/r" })).toContain(
    "does not use restic",
  );
  using temp = tempDirectory();
  const settings = { SLIPWAY_HOME_BACKUP_DIR: temp.path, SLIPWAY_HOME_BACKUP_ENGINE: "restic" };
  await expect(openStore({ ...settings, SLIPWAY_HOME_BACKUP_RESTIC: "/no/restic" }).chooseEngine()).rejects.toThrow(
    "not installed",
  );
  await expect(openStore({ ...settings, SLIPWAY_HOME_BACKUP_RESTIC: "/bin/true" }).chooseEngine()).rejects.toThrow(
    "is not restic",
  );
});

const DAY = 86_400_000;

test("[HB-7] the newest backup of each of the last N days and weeks is kept, and always the newest undamaged one", () => {
  const now = Date.UTC(2026, 0, 31, 12);
  const backups = Array.from({ length: 60 }, (_, i) => ({
    id: `${i}`,
    created_at: now - (i * DAY) / 2,
    isDamaged: false,
  }));
  const outdated = new Set(chooseOutdated(backups, { daily: 3, weekly: 2 }));
  // The day is a Saturday. Keeps the noon backups of three days, and the last backup of the Sunday before.
  expect(
    backups
      .filter(({ id }) => !outdated.has(id))
      .map(({ created_at }) => new Date(created_at).toISOString().slice(0, 13)),
  ).toEqual(["2026-01-31T12", "2026-01-30T12", "2026-01-29T12", "2026-01-25T12"]);
  const damaged = backups.map((backup, i) => ({ ...backup, isDamaged: i < 3 }));
  const remaining = damaged.filter(({ id }) => !new Set(chooseOutdated(damaged, { daily: 1, weekly: 0 })).has(id));
  expect(remaining.map(({ id }) => id)).toEqual(["0", "1", "2", "3"]);
  expect(chooseOutdated([{ id: "only", created_at: 0, isDamaged: true }], { daily: 1, weekly: 0 })).toEqual([]);
});
