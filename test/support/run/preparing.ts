// Programs that `.ci/run` prepares while tests already run. When a script of `.ci` ends, its last line ("ready: ..." or "skip: ...") is
// written to a file of the script's name in the folder SLIPWAY_TEST_PREPARING. A test file that needs the program blocks its process until
// then, before its first test.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const POLL_MS = 100;
/** Longer than all scripts together take. */
const TIMEOUT_MS = 15 * 60_000;

/** Returns true if the script has ended. */
export const hasEnded = (folder: string, name: string): boolean => existsSync(join(folder, name));

/** Waits for the script and returns whether it succeeded. */
export const isPrepared = (folder: string, name: string, timeoutMs = TIMEOUT_MS): boolean => {
  const deadline = performance.now() + timeoutMs;
  while (!hasEnded(folder, name)) {
    if (performance.now() > deadline) return false;
    Bun.sleepSync(POLL_MS);
  }
  return readFileSync(join(folder, name), "utf8").startsWith("ready:");
};
