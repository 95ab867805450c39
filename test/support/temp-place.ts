// The folder for a run's temp folders: in memory if there is room, since nearly every test waits for disk flushes repeatedly. test/crash
// tests the flushes themselves, by tracing system calls and breaking the disk.
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MEMORY = "/dev/shm";
const ROOM_BYTES = 4 * 1024 ** 3;

/** Returns the folder for TMPDIR: one in memory with 4 GiB of space in which programs may be executed, else the system's. */
export const chooseTempFolder = (): string => (isUsableFolder(MEMORY) ? MEMORY : tmpdir());

/** Also returns false if this is unknown, as on other systems. */
export const isUsableFolder = (folder: string, room = ROOM_BYTES): boolean => {
  let own: string | undefined;
  try {
    const { bavail, bsize } = statfsSync(folder);
    if (bavail * bsize < room) return false;
    own = mkdtempSync(join(folder, "slipway-fit-"));
    const program = join(own, "program");
    writeFileSync(program, "#!/bin/sh\nexit 0\n", { mode: 0o700 });
    return Bun.spawnSync([program]).exitCode === 0;
  } catch {
    return false;
  } finally {
    if (own) rmSync(own, { recursive: true, force: true });
  }
};
