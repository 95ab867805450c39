// Finds processes a test run has left behind (Linux; elsewhere nothing is found): they carry the run's mark in their environment, or
// they have their home or working directory in a folder that a test has made. The latter are named after that test.
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { NotedFolder } from "./ledger.ts";

/** The variable that marks a run. Not SLIPWAY_: the product would refuse a setting it does not know. */
export const RUN_MARK = "TEST_RUN_MARK";

export interface Leftover {
  pid: number;
  command: string;
  /** Where the folder that it lives in was made; empty when it is unknown. */
  place: string;
}

/** Live processes other than this one that were started under `mark`, or live in one of the folders. */
export const leftovers = (mark: string, folders: readonly NotedFolder[] = []): Leftover[] => {
  if (!existsSync("/proc/self/environ")) return [];
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.flatMap((pid) => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
      const home = environment.find((one) => one.startsWith("HOME="))?.slice("HOME=".length) ?? "";
      const at = [home, readlinkSync(`/proc/${pid}/cwd`)].map((path) => `${path}/`);
      const noted = folders.find(({ folder }) => at.some((path) => path.startsWith(`${folder}/`)));
      if (!noted && !environment.includes(`${RUN_MARK}=${mark}`)) return [];
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      return [{ pid: Number(pid), command, place: noted?.place ?? "" }];
    } catch {
      return []; // it ended while we looked, or it is not ours
    }
  });
};

/** Ends them immediately. */
export const endLeftovers = (found: readonly Leftover[]): void => {
  for (const { pid } of found) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // gone already
    }
  }
};
