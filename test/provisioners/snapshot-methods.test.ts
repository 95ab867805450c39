// The methods that copy a home: an archive on any file system, and reflinks and subvolumes on file systems that this machine can mount.
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
const cleanups: (() => void)[] = [];
afterAll(() => {
  for (const cleanUp of cleanups) cleanUp();
  directory[Symbol.dispose]();
});

const runCommand = (...command: string[]): number =>
  Bun.spawnSync(command, { stdio: ["ignore", "ignore", "ignore"] }).exitCode;

/** Mounts a new file system of a kind. Returns undefined if this machine cannot. */
const mountFileSystem = (makeCommand: readonly string[], kind: string): string | undefined => {
  if (process.geteuid?.() !== 0 || !Bun.which(makeCommand[0] ?? "")) return undefined;
  const [image, mountPoint] = [join(directory.path, `${kind}.image`), join(directory.path, kind)];
  mkdirSync(mountPoint);
  if (runCommand("truncate", "-s", "400M", image) !== 0 || runCommand(...makeCommand, image) !== 0) return undefined;
  if (runCommand("mount", "-o", "loop", image, mountPoint) !== 0) return undefined;
  cleanups.push(() => runCommand("umount", "-l", mountPoint));
  return mountPoint;
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

/** Copies and restores a home whose files are difficult to copy. */
const copyAndRestore = async (root: string, method: SnapshotMethod): Promise<void> => {
  const homes = new LocalHomes(join(root, "workspaces"), systemClock);
  const [id, forkId, snapshot_id] = [uuid(), uuid(), uuid()];
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
  // The sizes of folders depend on the file system, so they are removed.
  const listFiles = (home: string): string => listEntries(home).replace(/^(.* d \d+) \d+/gm, "$1");
  const files = listFiles(folder.home);
  const snapshot = { workspace_id: id, snapshot_id };
  expect(await homes.method(id)).toBe(method);
  const captured = await homes.capture(snapshot, signal);
  expect(captured.method).toBe(method);
  expect(await homes.capture(snapshot, signal)).toEqual(captured);
  runCommand("chmod", "-R", "u+w", folder.home);
  runCommand("find", folder.home, "-mindepth", "1", "-delete");
  writeFileSync(homePath("later"), "x");
  await homes.restore(id, snapshot, signal);
  expect(listFiles(folder.home)).toBe(files);
  // A home backup stores a snapshot as an archive.
  const unpacked = { workspace_id: id, snapshot_id: uuid() };
  await homes.pack(snapshot, signal, (archive) => homes.unpack(unpacked, archive, signal));
  await homes.restore(id, unpacked, signal);
  expect(listFiles(folder.home)).toBe(files);
  await homes.discard(unpacked);
  // A copy does not contain later writes.
  writeFileSync(homePath("run.sh"), "changed");
  const fork = new WorkspaceFolder(join(root, "workspaces"), forkId);
  fork.create();
  await homes.restore(forkId, snapshot, signal);
  expect(listFiles(fork.home)).toBe(files);
  expect(readFileSync(join(fork.home, "run.sh"), "utf8")).toBe("#!/bin/sh\n");
  // A damaged or missing copy does not replace the existing files.
  if (method === "archive") {
    writeFileSync(join(folder.toSnapshotPath(snapshot_id), "home.tar.zst"), "damaged");
    expect(homes.restore(id, snapshot, signal)).rejects.toThrow("could not unpack the snapshot");
    await homes.restore(id, snapshot, signal).catch(() => {});
    expect(readFileSync(homePath("run.sh"), "utf8")).toBe("changed");
  }
  await homes.discard(snapshot);
  expect(existsSync(folder.toSnapshotPath(snapshot_id))).toBe(false);
  expect(homes.restore(id, snapshot, signal)).rejects.toThrow("The snapshot's files are missing.");
  await homes.restore(id, snapshot, signal).catch(() => {});
  expect(readFileSync(homePath("run.sh"), "utf8")).toBe("changed");
  folder.remove();
  fork.remove();
  expect([folder.exists, fork.exists]).toEqual([false, false]);
};

test("[SN-14][SN-2][SN-3] an archive contains every file of a home, and a damaged archive changes nothing", () =>
  copyAndRestore(directory.path, "archive"));

testNeeding(
  [makeNeed(mounts.btrfs, "mkfs.btrfs")],
  "[SN-14] on btrfs, homes are subvolumes and copies are snapshots of them",
  () => copyAndRestore(mounts.btrfs ?? "", "btrfs"),
);

testNeeding([makeNeed(mounts.btrfs, "mkfs.btrfs")], "[FO-8] on btrfs, forks share their data blocks", async () => {
  const root = mounts.btrfs ?? "";
  const homes = new LocalHomes(join(root, "many"), systemClock);
  const makeFolder = (id: string) => new WorkspaceFolder(join(root, "many"), id);
  const readUsedBytes = (): number => {
    runCommand("sync", "-f", root);
    const { blocks, bfree, bsize } = statfsSync(root);
    return (blocks - bfree) * bsize;
  };
  const snapshot = { workspace_id: uuid(), snapshot_id: uuid() };
  makeFolder(snapshot.workspace_id).create();
  const size = 64 * 1024 * 1024;
  runCommand("sh", "-c", `head -c ${size} /dev/urandom > '${makeFolder(snapshot.workspace_id).home}/large'`);
  await homes.capture(snapshot, signal);
  const usedBefore = readUsedBytes();
  const forkIds = Array.from({ length: 20 }, () => uuid());
  for (const id of forkIds) {
    makeFolder(id).prepare();
    await homes.restore(id, snapshot, signal);
    expect(statSync(join(makeFolder(id).home, "large")).size).toBe(size);
  }
  expect(readUsedBytes() - usedBefore).toBeLessThan(size / 4);
});

testNeeding(
  [needs.root, makeNeed(mounts.reflink, "mkfs.xfs")],
  "[SN-14] copies share data blocks on a file system that supports reflinks",
  () => copyAndRestore(mounts.reflink ?? "", "reflink"),
);

test("[SN-19] a home with an unreadable folder is not copied, and the error names the folder", async () => {
  using temp = tempDirectory();
  const [home, to] = [join(temp.path, "home"), join(temp.path, "copy")];
  for (const path of [join(home, "a"), join(home, "private folder"), to]) mkdirSync(path, { recursive: true });
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) runCommand("chown", "-R", "65534:65534", home);
  chmodSync(temp.path, 0o711);
  chmodSync(join(home, "private folder"), 0);
  const copying = copyHome("archive", { home, to, as: isRoot ? { uid: 65534, gid: 65534 } : undefined }, signal);
  await expect(copying).rejects.toThrow("it can't read ~/private folder (permission denied)");
  chmodSync(join(home, "private folder"), 0o700);
});
