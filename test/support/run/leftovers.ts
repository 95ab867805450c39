// Finds processes that a test run has left behind (Linux only): processes with the run's mark in their environment, and processes with
// their home or working directory in a test's folder, which are attributed to that test.
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { NotedFolder } from "./ledger.ts";

/** The variable that marks a run. It has no prefix SLIPWAY_, because the product rejects unknown settings. */
export const RUN_MARK = "TEST_RUN_MARK";

export interface Leftover {
  pid: number;
  command: string;
  /** The location of the test that created the folder; empty if unknown. */
  location: string;
}

/** Returns other live processes that were started under `mark` or use one of the folders. */
export const findLeftovers = (mark: string, folders: readonly NotedFolder[] = []): Leftover[] => {
  if (!existsSync("/proc/self/environ")) return [];
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.flatMap((pid) => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
      const home = environment.find((variable) => variable.startsWith("HOME="))?.slice("HOME=".length) ?? "";
      const paths = [home, readlinkSync(`/proc/${pid}/cwd`)].map((path) => `${path}/`);
      const noted = folders.find(({ folder }) => paths.some((path) => path.startsWith(`${folder}/`)));
      if (!noted && !environment.includes(`${RUN_MARK}=${mark}`)) return [];
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      return [{ pid: Number(pid), command, location: noted?.location ?? "" }];
    } catch {
      return []; // The process has ended, or belongs to another user.
    }
  });
};

/** Kills the processes. */
export const endLeftovers = (found: readonly Leftover[]): void => {
  for (const { pid } of found) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The process has already ended.
    }
  }
};
