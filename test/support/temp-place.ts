// Where the tests of a run keep their folders: in memory where there is room, since nearly every test waits for flushes of a disk again and
// again. What a flush must do is tried by test/crash, which watches the system's calls and breaks the disk itself.
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MEMORY = "/dev/shm";
const ROOM_BYTES = 4 * 1024 ** 3;

/** The folder for TMPDIR: one in memory with 4 GiB of room in which programs may be started, else the system's own. */
export const tempPlace = (): string => (isFit(MEMORY) ? MEMORY : tmpdir());

/** False also where it is unknown, such as on other systems. */
export const isFit = (folder: string, room = ROOM_BYTES): boolean => {
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
