// Ends programs that a template's code has started and that have left their run's process group. Finds them by working directory, and by
// the starting folder in their environment. Only processes younger than the run are ended: what an earlier build has started is the
// workspace.
import { readdir, readFile, readlink, realpath } from "node:fs/promises";
import { findMark, isAlive, type ProcessMark } from "../local/process-table.ts";

/** Maximum number of scans: a program that starts another at every scan cannot be ended this way. */
const MAX_ATTEMPTS = 5;

/**
 * Ends everything that was started in this folder after `run`, its first process. Never rejects; does nothing if the system does not report
 * processes.
 */
export const endStrays = async (folder: string, run: ProcessMark): Promise<void> => {
  const real = await realpath(folder).catch(() => folder);
  for (let look = 0; look < MAX_ATTEMPTS; look++) {
    const found = await findStrays([folder, real], Number(run.started));
    if (found.length === 0) return;
    for (const mark of found) {
      try {
        if (isAlive(mark)) process.kill(mark.pid, "SIGKILL");
      } catch {
        // The process has just ended.
      }
    }
  }
};

const findStrays = async (folders: readonly string[], since: number): Promise<ProcessMark[]> => {
  const names = await readdir("/proc").catch(() => []);
  const others = names.filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const found = await Promise.all(others.map((name) => findStray(name, folders, since)));
  return found.filter((mark) => mark !== undefined);
};

const findStray = async (pid: string, folders: readonly string[], since: number): Promise<ProcessMark | undefined> => {
  const [cwd, environment] = await Promise.all([
    readlink(`/proc/${pid}/cwd`).catch(() => ""),
    readFile(`/proc/${pid}/environ`, "latin1").catch(() => ""),
  ]);
  const isOurs = folders.some(
    (folder) =>
      `${cwd}/`.startsWith(`${folder}/`) || environment.includes(`PWD=${Buffer.from(folder).toString("latin1")}/`),
  );
  const mark = isOurs ? findMark(Number(pid)) : undefined;
  return mark && Number(mark.started) >= since ? mark : undefined;
};
