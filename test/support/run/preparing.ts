// Programs that `.ci/run` prepares while tests already run. When a script of `.ci` ends, its last line ("ready: ..." or "skip: ...") is in
// a file of its name in the folder SLIPWAY_TEST_PREPARING. A test file that needs the program blocks its process until then, before its
// first test.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const LOOK_MS = 100;
/** Longer than all scripts together may take. */
const LIMIT_MS = 15 * 60_000;

/** Returns true if the script has ended. */
export const hasEnded = (folder: string, name: string): boolean => existsSync(join(folder, name));

/** Waits for the script and returns whether it succeeded. */
export const isPrepared = (folder: string, name: string, limit = LIMIT_MS): boolean => {
  const until = performance.now() + limit;
  while (!hasEnded(folder, name)) {
    if (performance.now() > until) return false;
    Bun.sleepSync(LOOK_MS);
  }
  return readFileSync(join(folder, name), "utf8").startsWith("ready:");
};
