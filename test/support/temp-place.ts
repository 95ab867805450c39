// The folder for a run's temp folders: in memory if there is room, because nearly every test waits for disk flushes repeatedly. test/crash
// tests the flushes themselves, by tracing system calls and breaking the disk.
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MEMORY = "/dev/shm";
const MIN_FREE_BYTES = 4 * 1024 ** 3;

/** Returns the folder for TMPDIR: /dev/shm if it has 4 GiB of free space and programs can run there, else the system's. */
export const chooseTempFolder = (): string => (isUsableFolder(MEMORY) ? MEMORY : tmpdir());

/** Returns true if the folder has the space and programs can run there; false if the space is unknown, as on other systems. */
export const isUsableFolder = (folder: string, minFreeBytes = MIN_FREE_BYTES): boolean => {
  let probeFolder: string | undefined;
  try {
    const { bavail, bsize } = statfsSync(folder);
    if (bavail * bsize < minFreeBytes) return false;
    probeFolder = mkdtempSync(join(folder, "slipway-fit-"));
    const program = join(probeFolder, "program");
    writeFileSync(program, "#!/bin/sh\nexit 0\n", { mode: 0o700 });
    return Bun.spawnSync([program]).exitCode === 0;
  } catch {
    return false;
  } finally {
    if (probeFolder) rmSync(probeFolder, { recursive: true, force: true });
  }
};
