// Unpacks a home backup into a folder of this machine, for which no server is needed.
import { existsSync, readdirSync } from "node:fs";
import { mkdir, rename, rm, rmdir } from "node:fs/promises";
import { resolve } from "node:path";
import { feed } from "#base/system/child-streams.ts";
import { HomeBackupError } from "./error.ts";

const ENV = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C" };
const TAR = process.platform === "linux" ? ["tar", "--numeric-owner", "--sparse", "--xattrs"] : ["tar"];

/** Fills `folder`, which must be empty or missing, and is there whole or not at all. Throws HomeBackupError. */
export const extract = async (stream: AsyncIterable<Uint8Array>, folder: string): Promise<void> => {
  const to = resolve(folder);
  if (existsSync(to) && readdirSync(to).length > 0) throw new HomeBackupError(`${to} is not empty.`);
  const part = `${to}.part`;
  await rm(part, { recursive: true, force: true });
  await mkdir(part, { recursive: true, mode: 0o700 });
  try {
    const child = Bun.spawn([...TAR, "-C", part, "-xpf", "-"], {
      env: ENV,
      stdin: "pipe",
      stdout: "ignore",
      stderr: "pipe",
    });
    const words = new Response(child.stderr).text();
    await feed(child, stream);
    const code = await child.exited;
    if (code !== 0) {
      const why = (await words).trim().split("\n").at(-1)?.replace(/\.$/, "") || `exit status ${code}`;
      throw new HomeBackupError(`The files could not be unpacked: ${why}.`);
    }
    if (existsSync(to)) await rmdir(to);
    await rename(part, to);
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    throw error;
  }
};
