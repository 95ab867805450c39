// Programs that code of a template has started and that have left the process group of their run: found by where they run, and by what
// their environment says of where they were started. Only those younger than the run: what an earlier build has started is the workspace.
import { readdir, readFile, readlink, realpath } from "node:fs/promises";
import { findMark, isAlive, type ProcessMark } from "../local/process-table.ts";

/** Looks before it is given up: one that starts another at every look is nothing that can be ended so. */
const LOOKS = 5;

/** Ends what was started in this folder since `run`, the first process of it, was. Never rejects; does nothing where the system does not tell. */
export const endStrays = async (folder: string, run: ProcessMark): Promise<void> => {
  const real = await realpath(folder).catch(() => folder);
  for (let look = 0; look < LOOKS; look++) {
    const found = await straysIn([folder, real], Number(run.started));
    if (found.length === 0) return;
    for (const mark of found) {
      try {
        if (isAlive(mark)) process.kill(mark.pid, "SIGKILL");
      } catch {
        // It has just ended.
      }
    }
  }
};

const straysIn = async (folders: readonly string[], since: number): Promise<ProcessMark[]> => {
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
