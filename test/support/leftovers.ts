// Finds processes a test run has left behind: they carry the run's mark in their environment (Linux; elsewhere nothing is found).
import { existsSync, readdirSync, readFileSync } from "node:fs";

/** The variable that marks a run. Not SLIPWAY_: the product would refuse a setting it does not know. */
export const RUN_MARK = "TEST_RUN_MARK";

export interface Leftover {
  pid: number;
  command: string;
}

/** Live processes other than this one that were started under `mark`. */
export const leftovers = (mark: string): Leftover[] => {
  if (!existsSync("/proc/self/environ")) return [];
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.flatMap((pid) => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
      if (!environment.includes(`${RUN_MARK}=${mark}`)) return [];
      return [{ pid: Number(pid), command: readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim() }];
    } catch {
      return []; // it ended while we looked, or it is not ours
    }
  });
};

/** Ends them at once. */
export const endLeftovers = (found: readonly Leftover[]): void => {
  for (const { pid } of found) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // gone already
    }
  }
};
