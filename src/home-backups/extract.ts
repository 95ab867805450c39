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
 * Deletes devices and clears setuid and setgid bits: a container's root created them, and on this machine they would belong to the real
 * root. Does not follow links.
 */
const removeDangerousFiles = async (folder: string): Promise<void> => {
  for (const { name } of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, name);
    const found = await lstat(path);
    if (found.isBlockDevice() || found.isCharacterDevice()) await rm(path);
    else if (found.isDirectory()) await removeDangerousFiles(path);
    else if (found.isFile() && (found.mode & SETUID_BITS) !== 0) await chmod(path, found.mode & 0o1777);
  }
};

/** Fills `folder`, which must be empty or missing, completely or not at all. Throws HomeBackupError. */
export const extract = async (stream: AsyncIterable<Uint8Array>, folder: string): Promise<void> => {
  const to = resolve(folder);
  if (existsSync(to) && readdirSync(to).length > 0) throw new HomeBackupError(`${to} is not empty.`);
  const part = `${to}.part`;
  await rm(part, { recursive: true, force: true });
  await mkdir(part, { recursive: true, mode: PRIVATE_MODE });
  try {
    const child = Bun.spawn([...TAR, "-C", part, "-xpf", "-"], {
      env: ENV,
      stdin: "pipe",
      stdout: "ignore",
      stderr: "pipe",
    });
    const words = new Response(child.stderr).text();
    await writeToChild(child, stream);
    const code = await child.exited;
    if (code !== 0) {
      const why = (await words).trim().split("\n").at(-1)?.replace(/\.$/, "") || `exit status ${code}`;
      throw new HomeBackupError(`The files could not be unpacked: ${why}.`);
    }
    await removeDangerousFiles(part);
    // The original modes could expose files that the workspace had protected.
    await chmod(part, PRIVATE_MODE);
    if (existsSync(to)) await rmdir(to);
    await rename(part, to);
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    throw error;
  }
};
