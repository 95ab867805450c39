// Copies the files of a home with the cheapest method that its file system supports: a btrfs subvolume, copies that share data (reflinks),
// or a compressed archive. Reads and unpacks another user's files as that user, so that a symbolic link cannot lead to files of the server.
import { createReadStream, createWriteStream, lstatSync, mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress, createZstdDecompress } from "node:zlib";
import { drain } from "#base/system/child-streams.ts";
import type { SnapshotMethod } from "#schema/workspaces/snapshot.ts";
import { ProvisionError } from "../provisioner.ts";

export type FileOwner = { readonly uid: number; readonly gid: number };

const ARCHIVE_FILE = "home.tar.zst";
const TREE_FOLDER = "home";
const ENV = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C" };
const FAST_COMPRESSION = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
const BTRFS_MAGIC = 0x9123683e;
/** The inode number of the root folder of every subvolume. */
const SUBVOLUME_INODE = 256;
const isLinux = process.platform === "linux";
/** Keeps numeric IDs and sparse files, and skips file systems that are mounted in a home. */
const TAR = isLinux ? ["tar", "--numeric-owner", "--sparse", "--one-file-system", "--xattrs"] : ["tar"];

const isOnBtrfs = (path: string): boolean => isLinux && statfsSync(path).type === BTRFS_MAGIC;
const isSubvolume = (path: string): boolean => isOnBtrfs(path) && lstatSync(path).ino === SUBVOLUME_INODE;
const findBtrfs = (): string | null => Bun.which("btrfs", { PATH: ENV.PATH });

/** Creates an empty home. If possible, it is a subvolume, so that it can be copied instantly. */
export const createHome = (home: string): void => {
  const program = isOnBtrfs(join(home, "..")) ? findBtrfs() : null;
  if (program)
    Bun.spawnSync([program, "subvolume", "create", home], { env: ENV, stdio: ["ignore", "ignore", "ignore"] });
  mkdirSync(home, { recursive: true, mode: 0o700 });
};

/** Returns the cheapest method that works for the home. `scratch` is a writable folder on the same file system. */
export const chooseMethod = async (home: string, scratch: string): Promise<SnapshotMethod> => {
  if (isSubvolume(home) && findBtrfs()) return "btrfs";
  const probe = join(scratch, "reflink.probe");
  try {
    writeFileSync(probe, "probe", { mode: 0o600 });
    await runProgram(["cp", "--reflink=always", probe, `${probe}.copy`], "test the file system for reflinks");
    return "reflink";
  } catch {
    return "archive";
  } finally {
    rmSync(probe, { force: true });
    rmSync(`${probe}.copy`, { force: true });
  }
};

/** Copies the home into the empty folder `to`, as the user `as`. */
export const copyHome = async (
  method: SnapshotMethod,
  { home, to, as }: { readonly home: string; readonly to: string; readonly as?: FileOwner | undefined },
  signal: AbortSignal,
): Promise<void> => {
  if (method === "archive") return archiveHome(home, join(to, ARCHIVE_FILE), as, signal);
  await runProgram(["sync", "-f", home], "write the workspace's files to the disk", { signal });
  const tree = join(to, TREE_FOLDER);
  if (method === "btrfs")
    await runProgram(["btrfs", "subvolume", "snapshot", home, tree], "copy the workspace's files", { signal });
  else
    await runProgram(["cp", "-a", "--reflink=always", "--one-file-system", home, tree], "copy the workspace's files", {
      signal,
      as,
      home,
    });
};

/** Returns the method with which the copy in this folder was made; undefined if the folder has no copy. */
export const readMethod = (copy: string): SnapshotMethod | undefined => {
  if (lstatSync(join(copy, ARCHIVE_FILE), { throwIfNoEntry: false })?.isFile()) return "archive";
  if (!lstatSync(join(copy, TREE_FOLDER), { throwIfNoEntry: false })) return undefined;
  return isSubvolume(join(copy, TREE_FOLDER)) ? "btrfs" : "reflink";
};

/** Creates a home at `to`, which must not exist, from the copy in the folder `copy`. */
export const unpackHome = async (
  copy: string,
  to: string,
  { as, signal }: { readonly as?: FileOwner | undefined; readonly signal: AbortSignal },
): Promise<void> => {
  const method = readMethod(copy);
  if (method === undefined) throw new ProvisionError("The snapshot's files are missing.");
  const tree = join(copy, TREE_FOLDER);
  const doing = "restore the workspace's files";
  if (method === "btrfs") return runProgram(["btrfs", "subvolume", "snapshot", tree, to], doing, { signal });
  if (method === "reflink")
    return runProgram(["cp", "-a", "--reflink=auto", "--no-target-directory", tree, to], doing, { signal });
  createHome(to);
  if (as) await runProgram(["chown", `${as.uid}:${as.gid}`, to], doing, { signal });
  await unpackArchive(join(copy, ARCHIVE_FILE), to, as, signal);
};

/** Yields the copy in this folder as a tar archive. Throws ProvisionError, possibly after the last chunk. */
export async function* readCopy(copy: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const method = readMethod(copy);
  if (method === undefined) throw new ProvisionError("The snapshot's files are missing.");
  if (method === "archive") {
    const file = createReadStream(join(copy, ARCHIVE_FILE));
    const decompressed = createZstdDecompress();
    file.on("error", (error) => decompressed.destroy(error));
    try {
      for await (const chunk of file.pipe(decompressed)) {
        signal.throwIfAborted();
        yield chunk as Uint8Array;
      }
    } finally {
      file.destroy();
    }
    return;
  }
  // The server can read this copy safely, because no other user can access its folder.
  const child = spawn([...TAR, "-C", join(copy, TREE_FOLDER), "-cf", "-", "."], { signal });
  yield* drain(child);
  await waitForExit(child, "read the snapshot", { signal });
}

/** Fills the empty folder `to` with a copy from a tar archive. */
export const writeCopy = async (to: string, stream: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> => {
  const file = join(to, ARCHIVE_FILE);
  try {
    await pipeline(
      Readable.from(stream),
      createZstdCompress(FAST_COMPRESSION),
      createWriteStream(file, { mode: 0o600, flags: "wx" }),
      { signal },
    );
  } catch (error) {
    throw (error as { code?: unknown }).code === "ENOSPC" ? toFailure("store the files", error, signal) : error;
  }
  await syncToDisk(file);
};

/** Returns the size of the copy in this folder. */
export const measureCopy = async (copy: string): Promise<number> => {
  const archive = lstatSync(join(copy, ARCHIVE_FILE), { throwIfNoEntry: false });
  if (archive) return archive.size;
  return measureTree(join(copy, TREE_FOLDER));
};

/** Returns the disk usage of a folder; 0 if it does not exist. */
export const measureTree = async (path: string): Promise<number> => {
  const [kilobytes = ""] = (await readOutput(["du", "-sk", path])).split("\t");
  return (Number(kilobytes) || 0) * 1024;
};

/** Removes a folder with everything in it. Uses separate processes, because a home has many files. Succeeds if it does not exist. */
export const removeTree = async (path: string): Promise<void> => {
  for (const tree of [path, join(path, TREE_FOLDER)]) {
    const isFolder = lstatSync(tree, { throwIfNoEntry: false })?.isDirectory();
    if (!isFolder || !isSubvolume(tree)) continue;
    // An unprivileged user may not delete a subvolume. Then the following steps remove its files.
    await runProgram(["btrfs", "subvolume", "delete", tree], "remove a copy").catch(() => {});
  }
  const stillExists = () => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  if (!stillExists()) return;
  await runProgram(["rm", "-rf", "--", path], "remove a copy").catch(() => {});
  if (!stillExists()) return;
  // Package caches make their folders read-only.
  await runProgram(["chmod", "-R", "u+rwX", path], "remove a copy");
  await runProgram(["rm", "-rf", "--", path], "remove a copy");
};

const archiveHome = async (
  home: string,
  file: string,
  as: FileOwner | undefined,
  signal: AbortSignal,
): Promise<void> => {
  const child = spawn([...TAR, "-C", home, "-cf", "-", "."], { as, signal });
  try {
    const from = Readable.fromWeb(child.stdout as Parameters<typeof Readable.fromWeb>[0]);
    await pipeline(from, createZstdCompress(FAST_COMPRESSION), createWriteStream(file, { mode: 0o600, flags: "wx" }), {
      signal,
    });
  } catch (error) {
    child.kill("SIGKILL");
    throw toFailure("archive the workspace's files", error, signal);
  }
  await waitForExit(child, "archive the workspace's files", { signal, home });
  await syncToDisk(file);
};

const unpackArchive = async (
  file: string,
  to: string,
  as: FileOwner | undefined,
  signal: AbortSignal,
): Promise<void> => {
  const child = spawn([...TAR, ...(as ? ["--no-same-owner"] : []), "-C", to, "-xpf", "-"], { as, signal });
  try {
    const bytes = createReadStream(file).pipe(createZstdDecompress());
    const write = async (): Promise<void> => {
      for await (const chunk of bytes) {
        child.stdin.write(chunk as Uint8Array);
        await child.stdin.flush();
      }
      await child.stdin.end();
    };
    await Promise.race([
      write(),
      child.exited.then((code) => (code === 0 ? undefined : Promise.reject(new Error(CHILD_FAILED)))),
      rejectOnError(bytes),
    ]);
  } catch (error) {
    // If the child has failed, its own error is more useful: `waitForExit` throws it.
    if ((error as Error).message !== CHILD_FAILED) {
      child.kill("SIGKILL");
      throw toFailure("unpack the snapshot", error, signal);
    }
  }
  await waitForExit(child, "unpack the snapshot", { signal });
};

const CHILD_FAILED = "the child process failed";

const rejectOnError = (stream: NodeJS.EventEmitter): Promise<never> =>
  new Promise((_, reject) => {
    stream.on("error", reject);
  });

/** Waits until the file or folder is on disk. */
export const syncToDisk = async (path: string): Promise<void> => {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
};

type Options = {
  /** The user that the program runs as; defaults to the server's user. */
  readonly as?: FileOwner | undefined;
  readonly signal?: AbortSignal;
  /** The home that the program reads. An error then names the unreadable path in it. */
  readonly home?: string;
};

const spawn = (command: readonly string[], { as, signal }: Options) =>
  Bun.spawn([...command], {
    cwd: "/",
    env: ENV,
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
    ...(as ? { uid: as.uid, gid: as.gid } : {}),
    ...(signal ? { signal, killSignal: "SIGKILL" } : {}),
  });

const waitForExit = async (
  child: ReturnType<typeof spawn>,
  doing: string,
  { signal, home }: Pick<Options, "signal" | "home">,
): Promise<void> => {
  const errorOutput = await new Response(child.stderr).text();
  const code = await child.exited;
  signal?.throwIfAborted();
  const unreadable = code !== 0 && home !== undefined ? findUnreadable(errorOutput, home) : undefined;
  if (unreadable !== undefined) {
    throw new ProvisionError(
      `The server could not ${doing}: it can't read ${unreadable} (permission denied). Change its permissions or remove it.`,
    );
  }
  if (code !== 0)
    throw new ProvisionError(`The server could not ${doing}: ${getLastLine(errorOutput) || `exit status ${code}`}.`);
};

/** Runs a system program to its end. `doing` completes the sentence "The server could not ...". */
const runProgram = async (command: readonly string[], doing: string, options: Options = {}): Promise<void> => {
  options.signal?.throwIfAborted();
  let child: ReturnType<typeof spawn>;
  try {
    child = spawn(command, options);
  } catch (error) {
    throw toFailure(doing, error, options.signal);
  }
  child.stdin.end();
  await waitForExit(child, doing, options);
};

const readOutput = async (command: readonly string[]): Promise<string> => {
  const child = spawn(command, {});
  child.stdin.end();
  return new Response(child.stdout).text();
};

const toFailure = (doing: string, error: unknown, signal?: AbortSignal): Error => {
  if (signal?.aborted) return signal.reason as Error;
  if (error instanceof ProvisionError) return error;
  const { code, message } = error as { code?: unknown; message: string };
  const reason = code === "ENOSPC" ? "there is no space left in the data directory" : message;
  return new ProvisionError(`The server could not ${doing}: ${reason}.`);
};

/** Returns the first path in the home that `tar` or `cp` could not read, such as `~/private`. */
const findUnreadable = (output: string, home: string): string | undefined => {
  for (const line of output.split("\n").filter((one) => one.endsWith(": Permission denied"))) {
    const [, tarPath, cpPath] = /^tar: \.\/(.+?): C|^cp: cannot \w+ '(.+)'/.exec(line) ?? [];
    if (tarPath !== undefined) return `~/${tarPath}`;
    if (cpPath?.startsWith(`${home}/`)) return `~/${cpPath.slice(home.length + 1)}`;
  }
  return undefined;
};

const getLastLine = (output: string): string =>
  output.trim().split("\n").at(-1)?.replace(/\.$/, "").slice(0, 300) ?? "";
