// How the files of a home are copied: an archive on any file system, reflinks and subvolumes on real ones if this machine can create them.
import { afterAll, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import type { SnapshotMethod } from "#schema/workspaces/snapshot.ts";
import { WorkspaceFolder } from "#src/provisioners/local/folder.ts";
import { copyHome } from "#src/provisioners/local/home-files.ts";
import { LocalHomes } from "#src/provisioners/local/homes.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { tempDirectory } from "#test/support/server.ts";

const signal = new AbortController().signal;
const directory = tempDirectory();
const ended: (() => void)[] = [];
afterAll(() => {
  for (const end of ended) end();
  directory[Symbol.dispose]();
});

const runCommand = (...command: string[]): number =>
  Bun.spawnSync(command, { stdio: ["ignore", "ignore", "ignore"] }).exitCode;

/** A file system of this kind in a file; undefined if this machine cannot create one. */
const mountFileSystem = (make: readonly string[], kind: string): string | undefined => {
  if (process.geteuid?.() !== 0 || !Bun.which(make[0] ?? "")) return undefined;
  const [image, place] = [join(directory.path, `${kind}.image`), join(directory.path, kind)];
  mkdirSync(place);
  if (runCommand("truncate", "-s", "400M", image) !== 0 || runCommand(...make, image) !== 0) return undefined;
  if (runCommand("mount", "-o", "loop", image, place) !== 0) return undefined;
  ended.push(() => runCommand("umount", "-l", place));
  return place;
};
const mounts = {
  btrfs: mountFileSystem(["mkfs.btrfs", "-q"], "btrfs"),
  reflink: mountFileSystem(["mkfs.xfs", "-q"], "reflink"),
} as const;
const makeNeed = (location: string | undefined, file: string) => ({
  found: location !== undefined,
  reason: `needs ${file} and loop devices`,
  file,
});

/** Files that a copy could get wrong, copied and restored. */
const story = async (root: string, method: SnapshotMethod): Promise<void> => {
  const homes = new LocalHomes(join(root, "workspaces"), systemClock);
  const [id, fork, snapshot_id] = [uuid(), uuid(), uuid()];
  const folder = new WorkspaceFolder(join(root, "workspaces"), id);
  folder.create();
  const homePath = (...names: string[]): string => join(folder.home, ...names);
  mkdirSync(homePath("read only", "deep"), { recursive: true });
  writeFileSync(homePath("read only", "deep", "Ünïcode\nname"), "odd");
  runCommand("chmod", "-R", "a-w", homePath("read only"));
  writeFileSync(homePath("run.sh"), "#!/bin/sh\n", { mode: 0o751 });
  symlinkSync("/nowhere/at all", homePath("dangling"));
  runCommand("truncate", "-s", "30M", homePath("sparse"));
  runCommand("ln", homePath("run.sh"), homePath("same.sh"));
  runCommand("mkfifo", homePath("pipe"));
  const listEntries = (home: string): string =>
    Bun.spawnSync(["find", ".", "-printf", "%P %y %m %s %l %n\n"], { cwd: home })
      .stdout.toString()
      .split("\n")
      .sort()
      .join("\n");
  // Folder sizes depend on the file system.
  const listFiles = (home: string): string => listEntries(home).replace(/^(.* d \d+) \d+/gm, "$1");
  const before = listFiles(folder.home);
  const ref = { workspace_id: id, snapshot_id };
  expect(await homes.method(id)).toBe(method);
  const created = await homes.capture(ref, signal);
  expect(created.method).toBe(method);
  expect(await homes.capture(ref, signal)).toEqual(created);
  runCommand("chmod", "-R", "u+w", folder.home);
  runCommand("find", folder.home, "-mindepth", "1", "-delete");
  writeFileSync(homePath("later"), "x");
  await homes.restore(id, ref, signal);
  expect(listFiles(folder.home)).toBe(before);
  // Through an archive, as a home backup stores it.
  const copied = { workspace_id: id, snapshot_id: uuid() };
  await homes.pack(ref, signal, (packed) => homes.unpack(copied, packed, signal));
  await homes.restore(id, copied, signal);
  expect(listFiles(folder.home)).toBe(before);
  await homes.discard(copied);
  // Later writes are in no copy.
  writeFileSync(homePath("run.sh"), "changed");
  const other = new WorkspaceFolder(join(root, "workspaces"), fork);
  other.create();
  await homes.restore(fork, ref, signal);
  expect(listFiles(other.home)).toBe(before);
  expect(readFileSync(join(other.home, "run.sh"), "utf8")).toBe("#!/bin/sh\n");
  // If a copy is damaged or missing, the existing files stay.
  if (method === "archive") {
    writeFileSync(join(folder.toSnapshotPath(snapshot_id), "home.tar.zst"), "damaged");
    expect(homes.restore(id, ref, signal)).rejects.toThrow("could not unpack the snapshot");
    await homes.restore(id, ref, signal).catch(() => {});
    expect(readFileSync(homePath("run.sh"), "utf8")).toBe("changed");
  }
  await homes.discard(ref);
  expect(existsSync(folder.toSnapshotPath(snapshot_id))).toBe(false);
  expect(homes.restore(id, ref, signal)).rejects.toThrow("The snapshot's files are missing.");
  await homes.restore(id, ref, signal).catch(() => {});
  expect(readFileSync(homePath("run.sh"), "utf8")).toBe("changed");
  folder.remove();
  other.remove();
  expect([folder.exists, other.exists]).toEqual([false, false]);
};

test("[SN-14][SN-2][SN-3] an archive contains everything in a home, and a damaged one changes nothing", () =>
  story(directory.path, "archive"));

testNeeding(
  [makeNeed(mounts.btrfs, "mkfs.btrfs")],
  "[SN-14] on btrfs, homes are subvolumes and copies are snapshots of them",
  () => story(mounts.btrfs ?? "", "btrfs"),
);

testNeeding([makeNeed(mounts.btrfs, "mkfs.btrfs")], "[FO-8] on btrfs forks share their space", async () => {
  const root = mounts.btrfs ?? "";
  const homes = new LocalHomes(join(root, "many"), systemClock);
  const makeFolder = (id: string) => new WorkspaceFolder(join(root, "many"), id);
  const readUsedBytes = (): number => {
    runCommand("sync", "-f", root);
    const { blocks, bfree, bsize } = statfsSync(root);
    return (blocks - bfree) * bsize;
  };
  const ref = { workspace_id: uuid(), snapshot_id: uuid() };
  makeFolder(ref.workspace_id).create();
  const size = 64 * 1024 * 1024;
  runCommand("sh", "-c", `head -c ${size} /dev/urandom > '${makeFolder(ref.workspace_id).home}/large'`);
  await homes.capture(ref, signal);
  const before = readUsedBytes();
  const forks = Array.from({ length: 20 }, () => uuid());
  for (const id of forks) {
    makeFolder(id).prepare();
    await homes.restore(id, ref, signal);
    expect(statSync(join(makeFolder(id).home, "large")).size).toBe(size);
  }
  expect(readUsedBytes() - before).toBeLessThan(size / 4);
});

testNeeding(
  [needs.root, makeNeed(mounts.reflink, "mkfs.xfs")],
  "[SN-14] copies share data blocks if the file system supports it",
  () => story(mounts.reflink ?? "", "reflink"),
);

test("[SN-19] a home with an unreadable folder is not copied, and the error names the folder", async () => {
  using temp = tempDirectory();
  const [home, to] = [join(temp.path, "home"), join(temp.path, "copy")];
  for (const path of [join(home, "a"), join(home, "private folder"), to]) mkdirSync(path, { recursive: true });
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) runCommand("chown", "-R", "65534:65534", home);
  chmodSync(temp.path, 0o711);
  chmodSync(join(home, "private folder"), 0);
  const copied = copyHome("archive", { home, to, as: isRoot ? { uid: 65534, gid: 65534 } : undefined }, signal);
  await expect(copied).rejects.toThrow("it can't read ~/private folder (permission denied)");
  chmodSync(join(home, "private folder"), 0o700);
});
