// Extracts a home backup into a folder of this machine, without a server.
import { existsSync, readdirSync } from "node:fs";
import { chmod, lstat, mkdir, readdir, rename, rm, rmdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { writeToChild } from "#base/system/child-streams.ts";
import { HomeBackupError } from "./error.ts";

const ENV = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C" };
const TAR = process.platform === "linux" ? ["tar", "--numeric-owner", "--sparse", "--xattrs"] : ["tar"];

const PRIVATE_MODE = 0o700;
/** Set-user-ID and set-group-ID. */
const SETUID_BITS = 0o6000;

/**
 * Deletes devices and clears setuid and setgid bits. The root user of a container created them; on this machine, they would belong to the
 * machine's root user. Does not follow links.
 */
const removeDangerousFiles = async (folder: string): Promise<void> => {
  for (const { name } of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, name);
    const file = await lstat(path);
    if (file.isBlockDevice() || file.isCharacterDevice()) await rm(path);
    else if (file.isDirectory()) await removeDangerousFiles(path);
    else if (file.isFile() && (file.mode & SETUID_BITS) !== 0) await chmod(path, file.mode & 0o1777);
  }
};

/** Extracts the files to `folder`, which must be empty or missing. Extracts all files or none. Throws HomeBackupError. */
export const extract = async (stream: AsyncIterable<Uint8Array>, folder: string): Promise<void> => {
  const target = resolve(folder);
  if (existsSync(target) && readdirSync(target).length > 0) throw new HomeBackupError(`${target} is not empty.`);
  const part = `${target}.part`;
  await rm(part, { recursive: true, force: true });
  await mkdir(part, { recursive: true, mode: PRIVATE_MODE });
  try {
    const child = Bun.spawn([...TAR, "-C", part, "-xpf", "-"], {
      env: ENV,
      stdin: "pipe",
      stdout: "ignore",
      stderr: "pipe",
    });
    const errorOutput = new Response(child.stderr).text();
    await writeToChild(child, stream);
    const code = await child.exited;
    if (code !== 0) {
      const reason = (await errorOutput).trim().split("\n").at(-1)?.replace(/\.$/, "") || `exit status ${code}`;
      throw new HomeBackupError(`The files could not be unpacked: ${reason}.`);
    }
    await removeDangerousFiles(part);
    // The original modes could expose files that the workspace had protected.
    await chmod(part, PRIVATE_MODE);
    if (existsSync(target)) await rmdir(target);
    await rename(part, target);
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    throw error;
  }
};
