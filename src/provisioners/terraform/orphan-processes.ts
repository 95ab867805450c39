// Ends programs that a template's code has started and that have left their run's process group. Finds them by their working directory, and
// by the starting folder in their environment. Only processes younger than the run are ended: processes that an earlier build has started
// are the workspace.
import { readdir, readFile, readlink, realpath } from "node:fs/promises";
import { findMark, isAlive, type ProcessMark } from "../local/process-table.ts";

/** Maximum number of scans: a program that starts another at every scan cannot be ended this way. */
const MAX_ATTEMPTS = 5;

/**
 * Ends all processes that were started in this folder after `run`, the first process of the run. Never rejects; does nothing if the system
 * does not report processes.
 */
export const endStrays = async (folder: string, run: ProcessMark): Promise<void> => {
  const real = await realpath(folder).catch(() => folder);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const strays = await findStrays([folder, real], Number(run.started));
    if (strays.length === 0) return;
    for (const mark of strays) {
      try {
        if (isAlive(mark)) process.kill(mark.pid, "SIGKILL");
      } catch {
        // The process has just ended.
      }
    }
  }
};

const findStrays = async (folders: readonly string[], startedAfter: number): Promise<ProcessMark[]> => {
  const names = await readdir("/proc").catch(() => []);
  const others = names.filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const found = await Promise.all(others.map((name) => findStray(name, folders, startedAfter)));
  return found.filter((mark) => mark !== undefined);
};

const findStray = async (
  pid: string,
  folders: readonly string[],
  startedAfter: number,
): Promise<ProcessMark | undefined> => {
  const [cwd, environment] = await Promise.all([
    readlink(`/proc/${pid}/cwd`).catch(() => ""),
    readFile(`/proc/${pid}/environ`, "latin1").catch(() => ""),
  ]);
  const isInFolder = folders.some(
    (folder) =>
      `${cwd}/`.startsWith(`${folder}/`) || environment.includes(`PWD=${Buffer.from(folder).toString("latin1")}/`),
  );
  const mark = isInFolder ? findMark(Number(pid)) : undefined;
  return mark && Number(mark.started) >= startedAfter ? mark : undefined;
};
