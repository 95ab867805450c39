// Ends programs that a template's code has started and that have left the process group of their run. Finds them by their working directory
// and by PWD in their environment. Ends only processes younger than the run, because processes that an earlier build has started belong to
// the workspace.
import { readdir, readFile, readlink, realpath } from "node:fs/promises";
import { findMark, isAlive, type ProcessMark } from "../local/process-table.ts";

/** A program that keeps starting new programs cannot be ended this way. */
const MAX_SCANS = 5;

/**
 * Ends all processes that were started in this folder after `run`, the first process of the run. Never rejects; does nothing if the system
 * does not report processes.
 */
export const endOrphans = async (folder: string, run: ProcessMark): Promise<void> => {
  const real = await realpath(folder).catch(() => folder);
  for (let scan = 0; scan < MAX_SCANS; scan++) {
    const orphans = await findOrphans([folder, real], Number(run.started));
    if (orphans.length === 0) return;
    for (const mark of orphans) {
      try {
        if (isAlive(mark)) process.kill(mark.pid, "SIGKILL");
      } catch {
        // The process has just ended.
      }
    }
  }
};

const findOrphans = async (folders: readonly string[], startedAfter: number): Promise<ProcessMark[]> => {
  const names = await readdir("/proc").catch(() => []);
  const others = names.filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const found = await Promise.all(others.map((name) => findOrphan(name, folders, startedAfter)));
  return found.filter((mark) => mark !== undefined);
};

const findOrphan = async (
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
